"""The README's figures are those that are measured, and the examples on pages of results run."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt
import pytest

import pyterrier_mathamr as mathamr

README = Path(__file__).parents[2] / "README.md"


def python_blocks(page: Path) -> list[str]:
    """The Python of a page, except blocks marked ``notest``."""
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def run(page: Path) -> dict[str, Any]:
    """Run the Python of a page in order, with nothing defined before."""
    names: dict[str, Any] = {}
    for block in python_blocks(page):
        exec(compile(block, str(page), "exec"), names)
    return names


PAGES = [
    page
    for page in sorted((README.parent / "docs" / "archive").glob("*.md"))
    if python_blocks(page) and page.stem != "late-interaction"  # run by test_examples.py, without network
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_examples_of_a_page_of_results_run_by_themselves(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sentence_transformers", reason="the extra text is not installed")
    monkeypatch.chdir(tmp_path)
    run(page)


# How near a measurement comes to a figure. BM25 searches all answers. For the model only the judged ones are encoded,
# with trees from LaTeX; the cut at 1,000 and the official trees make the difference.
TOLERANCES = {"BM25": 0.0006, "mathamr-plus-mini": 0.006, "mathamr-plus-text": 0.008}
PRESETS = {"BM25": "standard", "BM25, tuned for mathematics": "math"}
DEFAULT = "`mathamr-plus-text`, the default model"


@pytest.mark.filterwarnings("ignore::pyterrier_mathamr._common.feedback.PostWarning")  # of real posts
def test_the_figures_of_bm25_are_measured(shared_data: Path, tmp_path: Path) -> None:
    answers, topics, qrels = judged_answers(shared_data)
    bm25s = {name: mathamr.BM25Index(tmp_path / name, preset=preset) for name, preset in PRESETS.items()}
    searched = [bm25.index(answers).retriever() for bm25 in bm25s.values()]
    measured = pt.Experiment(searched, topics, qrels, mathamr.TASK1_MEASURES)[str(mathamr.TASK1_MEASURES[0])]
    shown = figures_of(README.read_text(encoding="utf-8"))
    assert measured.tolist() == pytest.approx([shown[name] for name in PRESETS], abs=TOLERANCES["BM25"])


@pytest.mark.filterwarnings("ignore::pyterrier_mathamr._common.feedback.PostWarning")  # of real posts
@pytest.mark.parametrize("model", ["mathamr-plus-mini", pytest.param("mathamr-plus-text", marks=pytest.mark.slow)])
def test_the_figures_of_a_bundled_model_are_measured(shared_data: Path, tmp_path: Path, model: str) -> None:
    answers, topics, qrels = judged_answers(shared_data)
    encoder, index = mathamr.MathAMR.from_pretrained(model), mathamr.MathAMRIndex(tmp_path / "index")
    graphs = mathamr.GraphBuilder(reads=encoder.reads)
    judged = [answer for answer in answers if answer["docno"] in set(qrels["docno"])]
    (graphs >> encoder.doc_encoder() >> index.indexer()).index(judged)
    search = graphs >> encoder.query_encoder() >> index.colbert()
    measured = pt.Experiment([search], topics, qrels, mathamr.TASK1_MEASURES)[str(mathamr.TASK1_MEASURES[0])]
    card = (README.parent / f"pyterrier_mathamr/data/models/{model}/README.md").read_text(encoding="utf-8")
    (figure,) = re.findall(r"^\| \**ColBERT-style\** \| \**(\.\d{3})", card, re.MULTILINE)
    assert measured[0] == pytest.approx(float(figure), abs=TOLERANCES[model])
    shown = figures_of(README.read_text(encoding="utf-8"))
    assert shown[DEFAULT] == float(figure) or model != "mathamr-plus-text"


def judged_answers(shared_data: Path) -> tuple[list[dict[str, str]], pd.DataFrame, pd.DataFrame]:
    """All answers, and the topics with judgments of them."""
    collection = mathamr.arqmath.ARQMathCollection(shared_data / "arqmath-mini")
    answers = [{"docno": post.id, "body": post.body} for post in collection.answers()]
    return answers, *judged_topics(collection, {answer["docno"] for answer in answers})


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


def figures_of(text: str) -> dict[str, float]:
    """The nDCG′ of each row of the README's table, by the row's name."""
    return {name: float(figure) for name, figure in re.findall(r"^\| (.+?) \| (\.\d{3})", text, re.MULTILINE)}
