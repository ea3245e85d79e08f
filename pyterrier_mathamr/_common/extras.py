"""Optional packages: imported where they are used, with an error that names the extra."""

from __future__ import annotations

import importlib
from types import ModuleType

from .errors import MissingExtraError


def require(module: str, extra: str) -> ModuleType:
    """Import an optional package.

    Args:
        module: the module's name, such as ``bm25s``.
        extra: the extra of ``pyterrier-mathamr`` that installs it.

    Returns:
        The imported module.

    Raises:
        MissingExtraError: the package is not installed; the message is the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(module.partition(".")[0], extra) from error
