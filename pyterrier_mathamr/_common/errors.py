"""The root of all errors and warnings of the package.

Each room has one subclass of :class:`MathAMRError`, and named causes below it. Fields are attributes, all of them go
to ``super().__init__`` (so that an error survives a worker process), and the text is made in ``__str__``.
"""

from __future__ import annotations


class MathAMRError(Exception):
    """Something that the caller can mend; the message says what, where and how."""


class MathAMRWarning(UserWarning):
    """Bad input that was skipped or repaired; the message says what, where and what became of it."""


class ConfigError(MathAMRError):
    """An option has a value that it cannot have."""

    def __init__(self, option: str, value: object, allowed: str) -> None:
        super().__init__(option, value, allowed)
        self.option, self.value, self.allowed = option, value, allowed

    def __str__(self) -> str:
        return f"{self.option}={self.value!r} is not possible; use {self.allowed}."


class MissingExtraError(MathAMRError, ImportError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, extra)
        self.package, self.extra = package, extra

    def __str__(self) -> str:
        return f"{self.package} is not installed; run: pip install 'pyterrier-mathamr[{self.extra}]'"


class BrokenExtraError(MathAMRError, ImportError):
    """An optional package is installed and cannot be imported."""

    def __init__(self, package: str, extra: str, reason: str) -> None:
        super().__init__(package, extra, reason)
        self.package, self.extra, self.reason = package, extra, reason

    def __str__(self) -> str:
        return (
            f"{self.package} is installed but cannot be imported ({self.reason}). Install it again with what it needs: "
            f"pip install --force-reinstall 'pyterrier-mathamr[{self.extra}]'"
        )
