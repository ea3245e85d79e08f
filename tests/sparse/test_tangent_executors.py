"""Formulas that several processes read: the index and the warnings of one process, also of what another began."""

import pickle
import warnings
from collections.abc import Callable, Generator, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from folder_bytes import folder_bytes

from mathamr_systems import ApproachZeroIndex, FormulaTrees
from pyterrier_mathamr import Processes
from pyterrier_mathamr._common.running.processes import Executor
from pyterrier_mathamr.sparse import TangentIndex
from pyterrier_mathamr.sparse import index as sparse
from pyterrier_mathamr.store import UnfinishedJobError

POSTS = [
    {
        "docno": f"p{i}",
        "title": f"Problem {i}",
        "text": f"Let $x_{{{i % 11}}}^2+1$, $\\unknown{{{i % 3}}}$ and $y_{i}=\\frac{{{i}}}{{2}}$. " + "$x" * (i == 7),
    }
    for i in range(24)
]
POSTS += [{"docno": f"q{i}", "html": f'<span class="math-container" id="{i % 8}">z^{{{i}}}</span>'} for i in range(16)]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many batches and several parts."""
    monkeypatch.setattr(sparse, "BATCH", 2)
    monkeypatch.setattr(sparse, "PART_BYTES", 6_000)


class Pickling(Executor):
    """Does work as a worker process would that needs no time to start."""

    slots = 2

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Generator[Any, None, None]:
        there = pickle.loads(pickle.dumps(work))
        for item in items:
            yield pickle.loads(pickle.dumps(there(pickle.loads(pickle.dumps(item)))))


def built(
    path: Path, posts: Any = POSTS, kind: Any = TangentIndex, **options: Any
) -> tuple[dict[str, bytes], list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kind(path).indexer(**options).index(posts)
    return folder_bytes(path), sorted(str(warning.message) for warning in caught)


def test_two_processes_build_and_add_as_one(tmp_path: Path) -> None:
    one, warned = built(tmp_path / "one")
    assert any("problems in" in text for text in warned)
    assert built(tmp_path / "one again", executor=Processes(1)) == (one, warned)
    for name in ("added", "added by two"):
        built(tmp_path / name, POSTS[:24])
    added = built(tmp_path / "added", POSTS[16:], mode="append")
    assert built(tmp_path / "added by two", POSTS[16:], mode="append", executor=Processes(2)) == added
    for kind in (ApproachZeroIndex, FormulaTrees):
        alone = built(tmp_path / f"{kind.__name__} one", POSTS[::3], kind=kind)
        assert built(tmp_path / kind.__name__, POSTS[::3], kind=kind, executor=Pickling()) == alone


def test_a_job_begun_by_several_processes_is_completed_by_one_and_vice_versa(tmp_path: Path) -> None:
    one, _ = built(tmp_path / "one")

    def stopping() -> Any:
        yield from islice(POSTS, 35)
        raise KeyboardInterrupt

    for first, second in ((Processes(2), None), (None, Pickling())):
        path = tmp_path / f"begun {first}"
        with pytest.raises(KeyboardInterrupt):
            built(path, stopping(), executor=first, resume=True)
        assert TangentIndex(path).unfinished() > 20
        with pytest.raises(UnfinishedJobError):
            built(path, [{**POSTS[0], "text": "Other $a+b$"}, *POSTS[1:]], resume=True)
        assert built(path, executor=second, resume=True)[0] == one
