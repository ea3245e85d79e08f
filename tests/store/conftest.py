"""The smallest artifact, for tests of the store itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from artifact_modules import Artifact, load

from pyterrier_mathamr.sparse import index as sparse

SIZES = sparse.PART_BYTES, sparse.BATCH


@pytest.fixture(scope="module", autouse=True)
def usual_parts() -> Iterator[None]:
    """Set back the sizes of parts, which the artifacts' builders make tiny, for all tests that come later."""
    yield
    sparse.PART_BYTES, sparse.BATCH = SIZES


@pytest.fixture(scope="session")
def toy() -> Artifact:
    """Ragged rows of numbers by id; see ``artifacts/toy.py``."""
    return load("toy")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the artifact of a test is."""
    return tmp_path / "it"
