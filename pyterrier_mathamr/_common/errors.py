"""The root of all errors and warnings of the package.

An error is its fields and a template of its message; an error class exists only if somebody catches it::

    class QueryError(MathAMRIndexError):
        qid: str
        reason: str
        template = "query {qid!r}: {reason}."

    raise QueryError("A.301", "it has no vectors")      # str: query 'A.301': it has no vectors.
"""

from __future__ import annotations

import dataclasses
import errno
import importlib
import inspect
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, requires
from string import Formatter
from types import ModuleType
from typing import ClassVar, dataclass_transform


@dataclass_transform(eq_default=False, field_specifiers=(dataclasses.field,))
class MathAMRError(Exception):
    """Something that the caller can fix; the message names the fault, the place and the remedy.

    The annotations of a subclass are its fields, in the order of its constructor. Its arguments go to
    ``Exception.__init__``, so that an error survives the way out of a worker process.
    """

    template: ClassVar[str] = ""
    """The message: a format string over fields and properties."""
    advice: ClassVar[str] = ""
    """The remedy: another format string, appended."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if inspect.get_annotations(cls):  # a class that adds no fields is constructed like its base
            dataclasses.dataclass(eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        names = [field.name for field in dataclasses.fields(self) if field.init]  # type: ignore[arg-type]
        super().__init__(*(getattr(self, name) for name in names))

    def __str__(self) -> str:
        if not self.template:  # an error that is nothing but a text
            return super().__str__()
        text = f"{self.template} {self.advice}".strip()
        return text.format(**{name: getattr(self, name) for _, name, _, _ in Formatter().parse(text) if name})


class MathAMRWarning(UserWarning):
    """Bad input that was skipped or repaired; the message names the fault, the place and how it was handled."""


class DocumentError(MathAMRError):
    """A post cannot be read: ``place`` is its file, line or number, or ``post`` where only its text is known."""

    place: str
    reason: str
    template = "{place}: {reason}."


class ConfigError(MathAMRError):
    """An argument or option has a value that is not accepted."""

    option: str
    value: object
    allowed: str
    template = "{option}={value!r} is not accepted; give {allowed}."


INSTALL_SYSTEMS = "pip install 'pyterrier-mathamr[systems]'"
OF_SYSTEMS = {
    "parsers": ("transition", "amrlib"),
    "commands": (
        "arqmath.stats", "arqmath.verify", "doctor", "draw.speed", "draw.topics", "evaluate", "experiment",
        "train-in-out",
    ),
}  # fmt: skip
"""What is named with this advice where the systems are not installed; else their entry points say what there is."""

_OF_EXTRA = re.compile(r"""(?P<package>[\w.-]+)\D*(?P<least>\d*).*;.*extra == ["'](?P<extra>[\w-]+)["']""")


@cache
def _extras_of_systems() -> dict[str, dict[str, int]]:
    """Read which packages each extra of the systems needs, with the first number of the least version."""
    core = _extras_of("pyterrier-mathamr")
    return {name: needed for name, needed in _extras_of("pyterrier-mathamr-systems").items() if name not in core}


def _extras_of(distribution: str) -> dict[str, dict[str, int]]:
    extras: dict[str, dict[str, int]] = {}
    with suppress(PackageNotFoundError):
        for match in filter(None, map(_OF_EXTRA.fullmatch, requires(distribution) or ())):
            needed = extras.setdefault(match["extra"], {})
            needed[match["package"].replace("-", "_")] = int(match["least"] or 0)
    return extras


class MissingExtraError(MathAMRError, ImportError):
    """A package is needed and not installed, too old, or cannot be imported; a required one has no extra."""

    package: str
    extra: str
    reason: str = ""
    least: int = 0
    template = "{package} {fault} {requirement}"

    @property
    def requirement(self) -> str:
        package = "pyterrier-mathamr-systems" if self.extra in _extras_of_systems() else "pyterrier-mathamr"
        return f"'{package}[{self.extra}]'" if self.extra else package

    @property
    def fault(self) -> str:
        """How the package is missing, old or broken, and the command that installs it."""
        if self.least:
            return f"{self.reason} is installed, but {self.least} or later is needed; run: pip install --upgrade"
        if not self.reason:
            return "is not installed; run: pip install"
        return (
            f"is installed but cannot be imported ({self.reason}). Reinstall it with its dependencies: "
            "pip install --force-reinstall"
        )


def require(module: str, extra: str = "") -> ModuleType:
    """Import an optional package, or a required one that only few users need."""
    package = module.partition(".")[0]
    # another extra may allow an earlier version; metadata takes milliseconds to read, which a search need not wait for
    least = _extras_of_systems().get(extra, {}).get(package, 0) if extra else 0
    try:
        if least:
            version: str = getattr(importlib.import_module(package), "__version__", "")
            if version and int(version.partition(".")[0]) < least:
                raise MissingExtraError(package, extra, version, least)
        return importlib.import_module(module)
    except MissingExtraError:
        raise
    except Exception as error:  # whatever its own code, or a library that it loads, raises
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            raise MissingExtraError(package, extra) from error
        raise MissingExtraError(package, extra, f"{type(error).__name__}: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, of another library, or the error's name where it has none."""
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


_REFUSALS = {
    errno.EMFILE, errno.ENFILE, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOMEM,
    errno.EBUSY, errno.ETIMEDOUT, errno.ESTALE,
}  # fmt: skip


def is_refusal(error: OSError) -> bool:
    """Whether the operating system refuses, for a limit, a permission, a full disk or the like; no file is at fault."""
    return error.errno in _REFUSALS


def listed(ids: Sequence[object]) -> str:
    """Name the first five ids, for a message; a long one is cut, and further ones become three dots."""
    names = (f"{name[:77]}…" if isinstance(name, str) and len(name) > 80 else name for name in ids[:5])
    return first_five([repr(name) for name in names], len(ids))


def first_five(names: Sequence[str], count: int = 0) -> str:
    """Join the first five names; three dots for further ones, of ``count``."""
    return ", ".join(names[:5]) + (", …" if max(len(names), count) > 5 else "")
