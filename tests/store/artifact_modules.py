"""The modules in ``artifacts``: how one artifact each is built, opened and read.

``build(path, range, mode, seed)`` writes rows d0, d1, … in parts of two and resumes what died, ``open(path)`` is the
artifact, and ``read(path)`` returns everything that can be read of it. A module names its ``MODES``, whether it
``DELETES`` and ``COMPACTS``, and which actions it ``REPEATS`` without an error.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ARTIFACTS = Path(__file__).resolve().with_name("artifacts")
NAMES = sorted(path.stem for path in ARTIFACTS.glob("[a-z]*.py"))

sys.path.append(str(ARTIFACTS))  # code that several of them share is in modules that begin with an underscore


def load(name: str) -> ModuleType:
    """Import the module of one artifact."""
    spec = importlib.util.spec_from_file_location(f"artifact_{name}", ARTIFACTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
