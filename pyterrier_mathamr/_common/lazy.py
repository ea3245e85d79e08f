"""Public names of a package that are imported when they are first used.

They are listed once, in the form that mypy reads::

    if TYPE_CHECKING:
        from .files.posts import Post as Post
        from . import graph as graph                 # a module; not a part of ``__all__``

    __getattr__, __dir__, __all__ = lazy_names(__name__)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

_IMPORT = re.compile(r"^    from (\S+) import (\w+) as \2\b", re.MULTILINE)


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package (PEP 562) from the imports in its source."""
    namespace = vars(sys.modules[package])
    source = namespace["__loader__"].get_data(namespace["__file__"]).decode()
    module_of = {name: module for module, name in _IMPORT.findall(source)}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = module_of[name]
        value = import_module(f".{name}", package) if module == "." else getattr(import_module(module, package), name)
        namespace[name] = value
        return value

    return get, lambda: sorted({*namespace, *module_of}), [name for name in module_of if module_of[name] != "."]
