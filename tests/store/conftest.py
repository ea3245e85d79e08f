"""The smallest artifact, for tests of the store itself."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def toy() -> ModuleType:
    """Ragged rows of numbers by id; see ``artifacts/toy.py``."""
    spec = importlib.util.spec_from_file_location("artifact_toy", Path(__file__).parent / "artifacts" / "toy.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the artifact of a test is."""
    return tmp_path / "it"
