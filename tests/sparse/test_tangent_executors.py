"""Symbol pairs that several processes take: the index and the warnings of one, also of what another began."""

import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from folder_bytes import folder_bytes

from mathamr_systems import ApproachZeroIndex, FormulaTrees
from pyterrier_mathamr import Processes
from pyterrier_mathamr.sparse import TangentIndex
from pyterrier_mathamr.sparse import index as sparse
from pyterrier_mathamr.store import UnfinishedJobError

POSTS = [
    {
        "docno": f"p{i}",
        "title": f"Problem {i}",
        "text": f"Let $x_{{{i % 11}}}^2+1$ and $\\unknown{{{i % 3}}}$ and $y_{i}=\\frac{{{i}}}{{2}}$. "
        + "$x" * (i % 40 == 7),
    }
    for i in range(60)
]
POSTS += [{"docno": f"q{i}", "html": f'<span class="math-container" id="{i % 20}">z^{{{i}}}</span>'} for i in range(40)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many batches and several parts."""
    monkeypatch.setattr(sparse, "BATCH", 9)
    monkeypatch.setattr(sparse, "PART_BYTES", 20_000)


def built(
    path: Path, posts: Any = POSTS, kind: Any = TangentIndex, **options: Any
) -> tuple[dict[str, bytes], list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kind(path).indexer(**options).index(posts)
    return folder_bytes(path), sorted(str(warning.message) for warning in caught)


@pytest.mark.usefixtures("small")
def test_two_processes_take_the_pairs_of_one(tmp_path: Path) -> None:
    one, warned = built(tmp_path / "one")
    assert any("problems in" in text for text in warned)
    assert built(tmp_path / "one again", executor=Processes(1)) == (one, warned)
    assert built(tmp_path / "two", executor=Processes(2)) == (one, warned)
    for name, executor in (("added", None), ("added by two", Processes(2))):
        built(tmp_path / name, POSTS[:60], executor=executor)
    assert built(tmp_path / "added", POSTS[40:], mode="append") == built(
        tmp_path / "added by two", POSTS[40:], mode="append", executor=Processes(2)
    )


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", [ApproachZeroIndex, FormulaTrees])
def test_every_index_of_formulas_is_built_by_processes_as_by_one(kind: Any, tmp_path: Path) -> None:
    one = built(tmp_path / "one", POSTS[::3], kind=kind)
    assert built(tmp_path / "two", POSTS[::3], kind=kind, executor=Processes(2)) == one


@pytest.mark.usefixtures("small")
def test_a_job_begun_by_several_processes_is_completed_by_one_and_vice_versa(tmp_path: Path) -> None:
    one, _ = built(tmp_path / "one")

    def stopping() -> Any:
        yield from islice(POSTS, 90)
        raise KeyboardInterrupt

    executors = [Processes(2), None]
    for first, second in (executors, executors[::-1]):
        path = tmp_path / f"begun {first}"
        with pytest.raises(KeyboardInterrupt):
            built(path, stopping(), executor=first, resume=True)
        assert TangentIndex(path).unfinished() > 50
        changed = [{**POSTS[0], "text": "Other $a+b$"}, *POSTS[1:]]
        with pytest.raises(UnfinishedJobError):
            built(path, changed, executor=second, resume=True)
        assert built(path, executor=second, resume=True)[0] == one
