"""A snapshot never asks the disk again: each reading method gives what it gave before other processes changed it."""

import inspect
import json
import math
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from pyterrier_mathamr.engine import EngineSnapshot, SearchEngine
from pyterrier_mathamr.engine.mcp import Tools
from pyterrier_mathamr.engine.origins import Filter
from pyterrier_mathamr.engine.page.answers import Answers
from pyterrier_mathamr.engine.ranking import ReadQuery
from pyterrier_mathamr.explain import Explanation
from pyterrier_mathamr.graph import MathAMRGraph
from tests.engine.conftest import POSTS, QUERY, built

NEW = {"id": "new", "title": "Basel again", "text": r"On $\sum_{n=1}^\infty \frac{1}{n^2}$ and $x^2 = y$ again"}
FORMULA, POST = r"\frac{1}{n^2}", "basel"
FORMULAS = pd.DataFrame([{"qid": "1", "query": QUERY, "latex": FORMULA}])

READS: Mapping[type, Mapping[str, Callable[[Any], Any]]] = {
    EngineSnapshot: {
        "blend": lambda at: at.blend()(at.frame(QUERY)),
        "bm25": lambda at: at.bm25()(at.frame(QUERY)),
        "changed": lambda at: at.changed,
        "counts": lambda at: [at.counts(), str(at), len(at), [name in at for name in (POST, "new")]],
        "docnos": lambda at: at.docnos(),
        "duplicates": lambda at: at.duplicates(similarity=0.0),
        "encode": lambda at: at.encode()(at.frame(QUERY)),
        "explain": lambda at: at.explain(QUERY, POST),
        "formulas": lambda at: at.formulas()(FORMULAS),
        "found": lambda at: at.found(at.question(QUERY), 9, chosen=Filter(within="")),
        "formulas_by_post": lambda at: at.formulas_by_post(FORMULA, 9),
        "frame": lambda at: at.frame(QUERY),
        "graph": lambda at: at.graph(POST),
        "headings": lambda at: at.headings(list(at.indexes.posts)),
        "identity": lambda at: at.identity,
        "matcher": lambda at: [at.matcher(at.read_query(QUERY)).like(FORMULA)],
        "matches": lambda at: at.matches(at.question(QUERY), np.array([1.0, 40.0, 90.0])),
        "macros": lambda at: [at.macros.formula(FORMULA)],
        "mathamr": lambda at: at.mathamr()(at.frame(QUERY)),
        "options": lambda at: at.options,
        "origins": lambda at: at.origins,
        "post": lambda at: at.post(POST),
        "question": lambda at: at.question(QUERY),
        "read_query": lambda at: at.read_query(QUERY),
        "report": lambda at: str(at.report()),
        "retriever": lambda at: at.retriever()(at.frame(QUERY)),
        "search": lambda at: at.search(QUERY, weak=True),
        "search_formula": lambda at: at.search_formula(FORMULA),
        "shown": lambda at: at.shown(question := at.question(QUERY), at.found(question, 9)),
        "snapshot": lambda at: at.snapshot().identity,
        "sources": lambda at: at.sources(),
        "suggestions": lambda at: at.suggestions("convergense of seris"),
        "threads": lambda at: at.threads,
    },
    Answers: {
        "engine": lambda page: page.engine.identity,
        "explain": lambda page: page.explain(QUERY, POST),
        "graph": lambda page: page.graph(POST),
        "post": lambda page: page.post(POST, QUERY),
        "preview": lambda page: page.preview(QUERY),
        "search": lambda page: [page.search(QUERY, weak=True), page.search(FORMULA, "formulas")],
        "settings": lambda page: page.settings(),
    },
    Tools: {
        "cite": lambda tools: tools.cite(POST, "converges", 400),
        "explain": lambda tools: tools.explain(QUERY, POST, 400),
        "read": lambda tools: tools.read(POST, 0, 1, 400),
        "search": lambda tools: tools.search(QUERY, 9, weak=True, max_tokens=400),
        "search_formula": lambda tools: tools.search_formula(FORMULA, 9, max_tokens=400),
    },
}
EACH = [pytest.param(reader, name, id=f"{reader.__name__}.{name}") for reader in READS for name in READS[reader]]


class Pinned(NamedTuple):
    """An engine that has only one state, for readers that ask for the current one."""

    state: EngineSnapshot

    def snapshot(self) -> EngineSnapshot:
        return self.state


def read(reader: type, name: str, at: EngineSnapshot) -> Any:
    """The value of a reading method, as plain data."""
    return plain(READS[reader][name](at if reader is EngineSnapshot else reader(Pinned(at))))


def plain(value: Any) -> Any:
    """Plain data that can be compared."""
    if isinstance(value, pd.DataFrame):
        return plain(value.to_dict("list"))
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float):
        return round(value, 4) if math.isfinite(value) else str(value)
    if isinstance(value, Explanation):
        return plain([value.score, value.parts])
    if isinstance(value, MathAMRGraph):
        return value.amr.to_penman()
    if isinstance(value, ReadQuery):
        return plain([value.post, value.weighed.weights, value.graph])
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key != "milliseconds"}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def test_every_public_method_of_a_reader_is_tested_here() -> None:
    for reader, calls in READS.items():
        public = {name for name, _ in inspect.getmembers(reader) if not name.startswith("_")}
        assert public - set(dir(object)) == set(calls) | ({"engine"} if reader is Answers else set())


@pytest.fixture(scope="module")
def states(engine: SearchEngine, tmp_path_factory: pytest.TempPathFactory) -> list[EngineSnapshot]:
    """The state before; and two that were opened from it, one of which lost some posts and one its whole folder."""
    opened = [engine.snapshot()]
    for name in ("changed", "removed"):
        path = tmp_path_factory.mktemp("engine") / engine.path.name
        shutil.copytree(engine.path, path)
        shutil.copystat(engine.path / "pt_meta.json", path / "pt_meta.json")
        opened.append(SearchEngine(path).snapshot())
        if name == "removed":
            shutil.rmtree(path)
        else:
            other = SearchEngine(path)
            path.with_name("new.jsonl").write_text(json.dumps(NEW))
            other.add(path.with_name("new.jsonl"))
            other.delete([POST])
    return opened


@pytest.mark.parametrize(("reader", "name"), EACH)
def test_a_reading_method_answers_from_the_state_that_was_opened(
    states: list[EngineSnapshot], reader: type, name: str
) -> None:
    before, changed, removed = (read(reader, name, at) for at in states)
    assert before or name == "sources"
    assert changed == before
    assert removed == before


def test_a_state_without_formulas_finds_none_after_an_engine_with_formulas_took_its_place(tmp_path: Path) -> None:
    words = POSTS[4]
    state = built(tmp_path / "e", [words]).snapshot()
    before = [state.search_formula("x").to_dict(), state.counts(), state.search("rings", weak=True).to_dict()]
    shutil.rmtree(tmp_path / "e")
    built(tmp_path / "e", [words, NEW])
    assert [state.search_formula("x").to_dict(), state.counts(), state.search("rings", weak=True).to_dict()] == before


def test_the_example_questions_of_the_page_come_from_the_state_that_is_served(
    engine: SearchEngine, tmp_path: Path
) -> None:
    shutil.copytree(engine.path, tmp_path / "e")
    page = Answers(SearchEngine(tmp_path / "e"))
    assert {example["kind"] for example in page.settings()["examples"]} >= {"question"}
    SearchEngine(tmp_path / "e").delete([docno for docno in engine.docnos() if docno != "words"])
    assert page.settings()["examples"] == []
