"""Optional packages: imported where they are used, with an error that names the extra."""

from __future__ import annotations

import importlib
from types import ModuleType

from .errors import BrokenExtraError, MissingExtraError


def require(module: str, extra: str) -> ModuleType:
    """Import an optional package."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except Exception as error:  # whatever its own code, or a library that it loads, raises
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            raise MissingExtraError(package, extra) from error
        reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        raise BrokenExtraError(package, extra, reason) from error
