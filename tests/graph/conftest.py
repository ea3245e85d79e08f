"""Fixtures of the graph store's tests."""

import pytest

from pyterrier_mathamr.graph import GraphStore


@pytest.fixture
def store(tmp_path):
    """A store that is not built yet."""
    return GraphStore(tmp_path / "graphs.mathamr")
