import re
import sys
from collections import deque
from collections.abc import Iterator
from itertools import zip_longest
from types import FrameType, ModuleType
from typing import Any

import pytest
from regex_steps import Budget, spans

PACKAGE = ("pyterrier_mathamr", "mathamr_systems")


class CountedPattern:
    """An unchanged expression whose steps are counted by a machine that must agree with it."""

    def __init__(self, pattern: re.Pattern[Any], budget: Budget) -> None:
        self.real, self.budget = pattern, budget

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def _counted(self, how: str, text: Any, at: int = 0, end: int | None = None) -> Iterator[re.Match[Any]]:
        """Yield each match on demand, counting up to there."""
        shown = text[:end].decode("latin-1") if isinstance(text, bytes) else text[:end]
        real = {
            "search": self.real.finditer,
            "match": lambda *given: filter(None, [self.real.match(*given)]),
            "fullmatch": lambda *given: filter(None, [self.real.fullmatch(*given)]),
        }[how](text, at, len(shown))
        for found, expected in zip_longest(spans(self.real, shown, at, self.budget, how), real):
            assert found == (expected and expected.span()), (
                f"the machine for {self.real.pattern!r} is wrong on {shown!r}"
            )
            yield expected

    def match(self, text: Any, *given: int) -> Any:
        return next(self._counted("match", text, *given), None)

    def fullmatch(self, text: Any, *given: int) -> Any:
        return next(self._counted("fullmatch", text, *given), None)

    def search(self, text: Any, *given: int) -> Any:
        return next(self._counted("search", text, *given), None)

    def finditer(self, text: Any, *given: int) -> Any:
        return self._counted("search", text, *given)

    def findall(self, text: Any, *given: int) -> Any:
        deque(self._counted("search", text, *given), maxlen=0)
        return self.real.findall(text, *given)

    def sub(self, by: Any, text: Any, count: int = 0) -> Any:
        deque(self._counted("search", text), maxlen=0)
        return self.real.sub(by, text, count)

    def split(self, text: Any, maxsplit: int = 0) -> Any:
        deque(self._counted("search", text), maxlen=0)
        return self.real.split(text, maxsplit)


class Work:
    """Counts what a call does: lines of the package that run, and steps of its regular expressions.

    Both are the same on each run and each machine. What they do not see is what one native call does (a slice, a
    search for a substring, libxml2, math-core); those are linear in what they are given.
    """

    def __init__(self) -> None:
        self.budget = Budget()

    def __call__(self, function: Any, *arguments: Any, most: float = float("inf")) -> int:
        self.budget.steps, self.budget.most = 0, most

        def count(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                self.budget.step()
            return count

        def enter(frame: FrameType, event: str, argument: Any) -> Any:
            return count if frame.f_globals.get("__name__", "").startswith(PACKAGE) else None

        trace, depth = sys.gettrace(), sys.getrecursionlimit()
        sys.setrecursionlimit(100_000)  # a machine calls itself for each repetition
        sys.settrace(enter)
        try:
            function(*arguments)
        finally:
            sys.settrace(trace)
            sys.setrecursionlimit(depth)
            self.budget.most = float("inf")  # work of others is not limited
        return self.budget.steps


def _counted(value: Any, budget: Budget) -> Any:
    if isinstance(value, re.Pattern):
        return CountedPattern(value, budget)
    if type(value) is tuple:
        parts = tuple(_counted(part, budget) for part in value)
        return parts if any(new is not old for new, old in zip(parts, value, strict=True)) else value
    return value


@pytest.fixture(scope="module")
def work() -> Iterator[Work]:
    """A meter of work, under all modules of the package that are imported."""
    meter = Work()
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith(PACKAGE) and isinstance(module, ModuleType):
                for key, value in list(vars(module).items()):
                    counted = _counted(value, meter.budget)
                    if counted is not value:
                        patch.setattr(module, key, counted)
        yield meter
