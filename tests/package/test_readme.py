"""The README and the pages: their examples run, and the README's figures are those that are measured."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import pyterrier_mathamr as mathamr

README = Path(__file__).parents[2] / "README.md"


def python_blocks(page: Path) -> list[str]:
    """The Python of a page, but for blocks that say ``notest``."""
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def run(page: Path) -> dict[str, Any]:
    """Run the Python of a page in order, with nothing defined before."""
    names: dict[str, Any] = {}
    for block in python_blocks(page):
        exec(compile(block, str(page), "exec"), names)
    return names


def test_python_examples_of_the_readme_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("Stemmer", reason="the extra bm25 is not installed")
    monkeypatch.chdir(tmp_path)
    table = run(README)["table"]
    assert table["name"].tolist() == ["BM25", "ColBERT-style", "BM25 % 100 >> scorer"]


PAGES = [page for page in sorted((README.parent / "docs").rglob("*.md")) if python_blocks(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_examples_of_a_page_run_by_themselves(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package, extra in (("Stemmer", "bm25"), ("sentence_transformers", "text")):
        pytest.importorskip(package, reason=f"the extra {extra} is not installed")
    monkeypatch.chdir(tmp_path)
    run(page)


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    links = re.findall(r"\]\(([^)#]+)\)|(?:src|srcset)=\"([^\"]+)\"", text)
    targets = [target for link in links for target in link if target and not target.startswith("http")]
    assert len(targets) > 15
    assert [target for target in targets if not (README.parent / target).exists()] == []


# How near a measurement comes to each row. BM25 searches all answers. For the model only the judged ones are encoded,
# with trees from LaTeX; the cut at 1,000 and the official trees make the difference.
MINI, TEXT = "`mathamr-plus-mini`, ColBERT-style", "`mathamr-plus-text`, the default, ColBERT-style"
TOLERANCES = {"random order of the judged": 0.004, "BM25 as shipped": 0.0006, MINI: 0.006, TEXT: 0.008}


@pytest.mark.filterwarnings("ignore::pyterrier_mathamr._common.feedback.PostWarning")  # of real posts
@pytest.mark.parametrize("model", ["mathamr-plus-mini", pytest.param("mathamr-plus-text", marks=pytest.mark.slow)])
def test_the_figures_of_the_readme_are_measured(shared_data: Path, tmp_path: Path, model: str) -> None:
    pytest.importorskip("Stemmer", reason="the extra bm25 is not installed")
    collection = mathamr.arqmath.ARQMathCollection(shared_data / "arqmath-mini")
    answers = [{"docno": post.id, "body": post.body} for post in collection.answers()]
    topics, qrels = judged_topics(collection, {answer["docno"] for answer in answers})
    bm25, index = mathamr.BM25Index(tmp_path / "bm25"), mathamr.MathAMRIndex(tmp_path / "index")
    bm25.index(answers)
    graphs, encoder = mathamr.GraphBuilder(), mathamr.MathAMR.from_pretrained(model)
    judged = [answer for answer in answers if answer["docno"] in set(qrels["docno"])]
    (graphs >> encoder.doc_encoder() >> index.indexer()).index(judged)
    random = np.random.default_rng(42)
    draws = [qrels.assign(score=random.permutation(len(qrels)).astype(float)) for _ in range(20)]
    systems = [bm25.retriever(), graphs >> encoder.query_encoder() >> index.colbert(), *draws]
    measured = pt.Experiment(systems, topics, qrels, mathamr.TASK1_MEASURES)
    figures = measured[list(map(str, mathamr.TASK1_MEASURES[:3]))].to_numpy()
    row = MINI if model == "mathamr-plus-mini" else TEXT
    found = {"random order of the judged": figures[2:].mean(axis=0), "BM25 as shipped": figures[0], row: figures[1]}
    shown = rows_of_figures(README.read_text(encoding="utf-8"))
    assert shown.keys() == TOLERANCES.keys()
    for name in found:
        np.testing.assert_allclose(found[name], shown[name], atol=TOLERANCES[name], err_msg=name)
    card = README.parent / f"pyterrier_mathamr/data/models/{model}/README.md"
    assert shown[row] in rows_of_figures(card.read_text(encoding="utf-8")).values()


def judged_topics(collection: Any, answers: set[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The topics of 2020 and 2022 with an answer of grade 2 or 3 in the collection, and their judgments there."""
    years = (2020, 2022)
    topics = pd.DataFrame(topic for year in years for topic in collection.topics(year)).rename(columns={"id": "qid"})
    qrels = pd.DataFrame(qrel for year in years for qrel in collection.qrels(year))
    qrels = qrels.rename(columns={"query_id": "qid", "doc_id": "docno", "relevance": "label"})
    qrels = qrels[qrels["docno"].isin(answers)]
    qrels = qrels[qrels["qid"].isin(qrels.loc[qrels["label"] >= 2, "qid"])]
    topics = topics.loc[topics["qid"].isin(qrels["qid"]), ["qid", "title", "body"]].reset_index(drop=True)
    assert len(topics) == 109
    return topics, qrels[["qid", "docno", "label"]]


def rows_of_figures(text: str) -> dict[str, list[float]]:
    """The first three figures of each row of Markdown tables that has any, such as .763, by the row's name."""
    rows = [[re.split(r"±|\(\.", cell)[0].strip(" *") for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    return {row[0]: list(map(float, row[1:4])) for row in rows if len(row) > 3 and re.fullmatch(r"\.\d{3}", row[1])}
