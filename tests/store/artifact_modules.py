"""The modules in ``artifacts``, each of which says how one artifact is built and read."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ARTIFACTS = Path(__file__).resolve().with_name("artifacts")
NAMES = sorted(path.stem for path in ARTIFACTS.glob("[a-z]*.py"))

sys.path.append(str(ARTIFACTS))  # what several of them share begins with an underscore


def load(name: str) -> ModuleType:
    """Import the module of one artifact."""
    spec = importlib.util.spec_from_file_location(f"artifact_{name}", ARTIFACTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
