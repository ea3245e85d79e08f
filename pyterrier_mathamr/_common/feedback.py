r"""Feedback on long work: progress bars, problems in a user's posts, and the contents of an artifact.

::

    building graphs:  80%|████████  | 1985/2466 graphs [00:21<00:05, 92.3 graphs/s]      with a total
    building graphs: 1985 graphs [00:21, 92.3 graphs/s]                                  without

    with reported_once():                                         the outermost one warns
        report_problem("b", "the $ is never closed", "$y broken") anywhere below, also in a part of the build

    PostWarning: 3 problems in 2 posts: the $ is never closed, in 'b': “$y broken”; the command \x is unknown, in 2 …

    MathAMRIndex(posts.mathamr): 6,164 documents, 98,312 vectors of 64 dimensions as float32, 34.7 MB    print(index)
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from pyterrier_mathamr._common.errors import MathAMRError, MathAMRWarning

T = TypeVar("T")

_WITH_TOTAL = "{l_bar}{bar}| {n_fmt}/{total_fmt}{unit} [{elapsed}<{remaining}, {rate_noinv_fmt}{postfix}]"
_WITHOUT = "{desc}: {n_fmt}{unit} [{elapsed}, {rate_noinv_fmt}{postfix}]"


def progress(
    items: Iterable[T],
    desc: str,
    unit: str,
    *,
    verbose: bool,
    total: int | None = None,
    note: Callable[[], str] | None = None,
) -> Iterable[T]:
    """Show a bar while ``items`` are iterated over, ending with the text of ``note``; no bar for a single item."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    if not verbose or (total is not None and total <= 1):
        return items
    return _with_bar(items, desc, unit, total, note)


def _with_bar(
    items: Iterable[T], desc: str, unit: str, total: int | None, note: Callable[[], str] | None
) -> Iterator[T]:
    import pyterrier as pt

    rest, shown = iter(items), {"total": total, "bar_format": _WITH_TOTAL}
    if total is None:  # the bar appears with the second item, which shows that there are several
        yield from islice(rest, 1)
        second = list(islice(rest, 1))
        if not second:
            return
        rest, shown = chain(second, rest), {"initial": 1, "bar_format": _WITHOUT}
    bar: Any = pt.tqdm(rest, desc=desc, unit=f" {unit}", dynamic_ncols=True, **shown)
    for item in bar:
        if note is not None:
            bar.set_postfix_str(note(), refresh=False)
        yield item


@contextmanager
def counted_progress(desc: str, unit: str, total: int, *, verbose: bool) -> Iterator[Callable[[int], object]]:
    """Yield a function that adds to the count of finished items, and show a bar; none for a single item.

    Bytes (unit ``B``) are scaled, and have a bar only if they take more than a second.
    """
    if not verbose or total <= 1:
        yield lambda count: None
        return
    import pyterrier as pt

    shown = {"unit_scale": True, "delay": 1} if unit == "B" else {"bar_format": _WITH_TOTAL, "smoothing": 0}
    unit = unit if unit == "B" else f" {unit}"
    shown["miniters"] = 1  # else a fast beginning stops the bar for seconds
    with pt.tqdm(total=total, desc=desc, unit=unit, dynamic_ncols=True, **shown) as bar:
        yield bar.update


_WORK_DONE: ContextVar[Callable[[int], object]] = ContextVar("what counts items of a batch", default=lambda count: None)


@contextmanager
def work_counted(count: Callable[[int], object]) -> Iterator[None]:
    """Call a function with the number of items of a batch that :func:`work_done` reports within."""
    token = _WORK_DONE.set(count)
    try:
        yield
    finally:
        _WORK_DONE.reset(token)


def work_done(count: int) -> None:
    """Report that so many more items of a large batch are done, before all of it is."""
    _WORK_DONE.get()(count)


def count_lines(file: IO[bytes]) -> int:
    """Count the lines of a file that are not blank, for a total."""
    return sum(not line.isspace() for line in file)


class Counted:
    """Gives a class the text of its name and counts; its `repr` stays the call that rebuilds it."""

    path: Any

    def counts(self) -> list[str]:
        """List its contents, each with its number."""
        raise NotImplementedError

    def __str__(self) -> str:
        try:
            what = ", ".join(self.counts())
        except MathAMRError as error:  # not built, or a server that does not answer
            what = str(getattr(error, "reason", error))
        return f"{type(self).__name__}({Path(self.path).name}): {what}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show it in IPython and in notebooks as ``print`` does."""
        printer.text(str(self))


def counted(count: int, noun: str) -> str:
    """Write a number of things: ``1 document``, ``6,164 documents``."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def size_of(count: int) -> str:
    """Write a number of bytes: ``12 bytes``, ``3.4 MB``."""
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


QUESTION = "the question"
"""The name of a question in the problems that are reported of it."""
_CAUSES = 10  # that a warning names


class Problem(NamedTuple):
    """A fault of a post: its docno or the qid of a query, the fault, and where in the text it is."""

    post: str
    what: str
    where: str


class PostWarning(MathAMRWarning):
    """Some posts have faults; they were read as far as possible."""


class Problems(dict[Problem, None]):
    """Problems in the order in which they were reported, each once.

    Attributes:
        reasons: of faults, see :func:`explain_problem`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reasons: dict[str, str] = {}

    def causes(self) -> list[str]:
        """Describe the problems by their faults, the most frequent first: how many there are, and the first one."""
        grouped: dict[str, list[Problem]] = {}
        for problem in self:
            grouped.setdefault(problem.what, []).append(problem)
        lines = []
        for what, problems in sorted(grouped.items(), key=lambda group: -len(group[1])):
            posts = {problem.post.partition("#")[0] for problem in problems}
            kind = "file" if all("." in post for post in posts) else "post"
            many = f"{counted(len(problems), 'place')} of {counted(len(posts), kind)}, first "
            post, where = problems[0].post, f"“{problems[0].where}”" if problems[0].where else ""
            first = ": ".join(filter(None, ["" if post == QUESTION else repr(post), where]))
            reason = f" ({self.reasons[what]})" if what in self.reasons else ""
            lines.append(f"{what}{reason}, in {many if len(problems) > 1 else ''}{first}")
        return lines

    def __str__(self) -> str:
        lines = self.causes()
        text = "; ".join(lines[:_CAUSES])
        if len(lines) > _CAUSES:
            text += f"; and {len(lines) - _CAUSES:,} more{self.reasons.get('', '')}"
        posts = {problem.post for problem in self}
        if posts == {QUESTION}:
            return f"The question: {text}"
        return f"{counted(len(self), 'problem')} in {counted(len(posts), 'post')}: {text}"


_OPEN: ContextVar[Problems | None] = ContextVar("problems of posts", default=None)


@contextmanager
def reported_once() -> Iterator[None]:
    """Gather the problems reported within, and warn of them once at the end, also after an error."""
    if _OPEN.get() is not None:
        yield
        return
    problems = Problems()
    try:
        with gathered() as problems:
            yield
    finally:
        if problems:
            warnings.warn(PostWarning(str(problems)), stacklevel=3)


@contextmanager
def gathered() -> Iterator[Problems]:
    """Gather the problems reported within, without a warning."""
    problems = Problems()
    token = _OPEN.set(problems)
    try:
        yield problems
    finally:
        _OPEN.reset(token)


class Overheard(NamedTuple):
    """Warnings of a worker process (texts and categories) and problems, passed on to its parent process."""

    warnings: list[tuple[str, type[Warning]]]
    problems: Problems

    def repeat(self) -> None:
        """Issue the warnings and report the problems in this process."""
        for text, category in self.warnings:
            warnings.warn(text, category, stacklevel=3)
        for problem in self.problems:
            report_problem(*problem)


@contextmanager
def overheard() -> Iterator[Overheard]:
    """Keep warnings and problems instead of showing them; complete when the block has ended."""
    with recorded_warnings() as caught, gathered() as problems:
        heard = Overheard([], problems)
        yield heard
    heard.warnings.extend((str(warning.message), warning.category) for warning in caught)


_FILTERS = threading.RLock()
"""Of warnings, which are the process's: a thread waits until no other has changed them."""


@contextmanager
def recorded_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Keep warnings in a list instead of showing them. Never wait for another thread within."""
    with _FILTERS, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


@contextmanager
def ignored_warnings(category: type[Warning], beginning: str = "") -> Iterator[None]:
    """Ignore warnings of a category, or those that begin with a text. Never wait for another thread within."""
    with _FILTERS, warnings.catch_warnings():
        warnings.filterwarnings("ignore", beginning, category)
        yield


def report_problem(post: str, what: str, where: str) -> None:
    """Report a problem of a post; ignored outside of :func:`reported_once`."""
    if (problems := _OPEN.get()) is not None:
        problems[Problem(post, what, where[:60])] = None


def explain_problem(what: str, reason: str) -> None:
    """Give the reason of a fault, which a warning adds to it; of an empty one, the command that lists all faults."""
    if (problems := _OPEN.get()) is not None:
        problems.reasons[what] = reason
