"""Forms of the engine's score: fitted on validation questions of all kinds of text, measured on test questions."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import known_item_split
from pyterrier_mathamr.arqmath.collection import SAMPLE
from studies.__main__ import main
from studies.protocol import blending
from studies.protocol.blending import (
    CHOSEN,
    FORMS,
    FOUND,
    LEFT_OUT,
    PARTS,
    RENAMED,
    TITLE,
    Scores,
    fit,
    part_of,
    read_kind,
    run_blending,
)
from studies.protocol.parts import Parts

TOPICS = ("prime", "limit", "matrix", "group", "integral", "graph", "lattice", "tensor")
VALIDATION = [name for name in map(str, range(100)) if known_item_split(name) == "validation"][:2]
TEST = [name for name in map(str, range(100)) if known_item_split(name) == "test"][:2]


def scores_of(rows: list[tuple[str, str, float, float]], right: list[tuple[str, str]]) -> Scores:
    """Candidates with BM25 and MaxSim; each query has B = 10, T = 4, V = 2, four tokens, and 8 as its greatest idf.

    By structures each has the reverse of the order of its MaxSim.
    """
    scores = pd.DataFrame(rows, columns=["qid", "docno", "words", "graph"])
    scores = scores.assign(bm25=scores["words"], structures=3 - scores["graph"])
    bounds = {"B": 10.0, "T": 4.0, "V": 2.0, "tokens": 4, "rarest": 8.0}
    queries = pd.DataFrame([{"qid": qid, **bounds} for qid in dict.fromkeys(scores["qid"])]).set_index("qid")
    return Scores(Parts(scores, queries, pd.DataFrame(right, columns=["qid", "docno"]).assign(label=1)))


def test_each_form_normalizes_by_the_value_in_its_name() -> None:
    found = scores_of([("q", "a", 5.0, 1.0), ("q", "b", 2.5, 2.0)], [("q", "a")])
    half = math.sqrt(0.5)
    wanted = {
        "bounded": (0.5 + 0.5, 0.25 + 1.0),
        "bounded, with structures": (0.5 + 0.5 + 0.2 * 2 / 404, 0.25 + 1.0 + 0.2 * 1 / 404),
        "the engine's structures": (0.5 + 0.5 + 0.2 * 2 / 404, 0.25 + 1.0 + 0.2 * 1 / 404),
        "BM25 by the root of its bound": (5 / math.sqrt(10) + 0.5, 2.5 / math.sqrt(10) + 1.0),
        "BM25 by the best of the query": (1.0 + 0.5, 0.5 + 1.0),
        "standard scores": (half - half, half - half),
        "reciprocal ranks": (1 / 61 + 1 / 62, 1 / 62 + 1 / 61),
    }
    plain = {form.name: form.score(found, 1.0, 0.0, 0.2).tolist() for form in FORMS if form.tilt is None}
    assert plain == {name: pytest.approx(values) for name, values in wanted.items()}
    tilted = {form.name: form.score(found, 1.0, 0.5, 0.0)[0] - 0.5 for form in FORMS if form.tilt is not None}
    by = {"bounded, by length": 4, "bounded, by rarest term": 8, "bounded, by agreement": 3 / 11}
    assert tilted == {name: pytest.approx(0.5 * math.sqrt(value)) for name, value in by.items()}


def test_only_the_first_right_answer_within_ten_counts() -> None:
    rows = [("q", f"d{rank:02}", 0.0, -float(rank)) for rank in range(1, 13)]
    rows += [("r", "x", 0.0, 2.0), ("r", "y", 0.0, 1.0), ("s", "x", 0.0, 1.0)]
    found = scores_of(rows, [("q", "d11"), ("r", "y"), ("s", "missing")])
    assert found.reciprocal_ranks(found.graph).tolist() == [0.0, 0.5, 0.0]
    tenth = scores_of(rows, [("q", "d10"), ("q", "d12")])
    assert tenth.reciprocal_ranks(tenth.graph).tolist() == [0.1, 0.0, 0.0]


def test_the_weight_is_fitted_on_validation_questions_only() -> None:
    rows, right = [], []
    for qid, words_are_right in (*((qid, True) for qid in VALIDATION), *((qid, False) for qid in TEST)):
        rows += [(qid, "words", 8.0, 0.2), (qid, "graph", 1.0, 1.8)]
        right.append((qid, "words" if words_are_right else "graph"))
    fitted = fit(FORMS[0], {"kind": scores_of(rows, right)})
    assert fitted.mean == 1
    assert 0.7 * fitted.odds > 0.8  # .8 of words and .1 of vectors is above .1 and .9
    assert 0.7 * fitted.odds / math.sqrt(2) <= 0.8  # and the next lower weight is not enough


def write_pairs(file: Path, name: str, parts: tuple[str, ...] = PARTS) -> Path:
    every = [f"{name}-{number}" for number in range(200)]
    qids = [qid for part in parts for qid in [qid for qid in every if known_item_split(qid) == part][:8]]
    pairs = (
        {
            "qid": qid,
            "question": f"A {TOPICS[n % 8]} $x_{n}$ of {name}?",
            "aid": f"{qid}-a",
            "answer": f"${n}$ {TOPICS[n % 8]}s",
        }
        for n, qid in enumerate(qids)
    )
    file.write_text("".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8")
    return file


def test_the_command_fits_and_measures_each_form(tmp_path: Path) -> None:
    files = [write_pairs(tmp_path / f"{name}.jsonl", name) for name in ("proofs", "threads")]
    work, model = tmp_path / "work", "mathamr-plus-mini"
    done = CliRunner().invoke(main, ["blending", *map(str, files), "--model", model, "--workdir", str(work), "--quiet"])
    assert done.exit_code == 0, done.output
    tables = json.loads((work / model / "report.json").read_text())["tables"]
    names = [form.name for form in FORMS]
    assert [row["name"] for row in tables[FOUND]] == ["BM25, tuned for mathematics", model, *names]
    assert [row["name"] for row in tables[LEFT_OUT]] == names
    assert all(row["share of words"] == pytest.approx(row["odds"] / (1 + row["odds"])) for row in tables[CHOSEN])
    assert all(0 < row["share of words, as written"] < 1 for row in tables[CHOSEN])
    (engine,) = (row for row in tables[CHOSEN] if row["form"] == "the engine's structures")
    assert engine["structures"] == pytest.approx(0.7 / 0.74)  # only the weight of words is fitted
    again = run_blending(files, work, model=model, verbose=False)
    assert all(stage.resumed for stage in again.stages)
    with pytest.raises(ConfigError, match="its own name"):
        run_blending([files[0], files[0]], work, model=model, verbose=False)
    with pytest.raises(ConfigError, match="the test part"):
        run_blending([write_pairs(tmp_path / "few.jsonl", "few", PARTS[:1])], work, model=model, verbose=False)


def test_questions_are_asked_by_titles_and_with_other_letters_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(blending, "known_item_split", lambda qid: "validation" if int(qid) % 2 else "test")
    found = read_kind(SAMPLE)
    by_title, renamed = (found.topics["qid"].str.endswith(end) for end in (TITLE, RENAMED))
    as_written = ~(by_title | renamed)
    assert np.count_nonzero(by_title) == np.count_nonzero(as_written) > 0
    whole, titles = (found.topics[rows].set_index("qid")["query"] for rows in (as_written, by_title))
    assert all(len(titles[f"{qid}{TITLE}"]) < len(text) for qid, text in whole.items())
    assert set(found.qrels["docno"]) <= {document["docno"] for document in found.documents()}

    monkeypatch.undo()
    found = read_kind(write_pairs(tmp_path / "proofs.jsonl", "proofs"))
    asked = found.topics.set_index("qid")["query"].to_dict()
    renamed = {qid: text for qid, text in asked.items() if qid.endswith(RENAMED)}
    assert len(renamed) == len(asked) / 2
    for qid, text in renamed.items():
        written = asked[qid.removesuffix(RENAMED)]
        assert text.split("$")[0] == written.split("$")[0]
        assert "x_" in written
        assert "x_" not in text
    right = found.qrels.groupby("qid")["docno"].agg(set)
    assert all(right[qid] == right[qid.removesuffix(RENAMED)] for qid in renamed)


def test_the_answers_of_the_questions_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blending, "QUESTIONS", 1)
    monkeypatch.setattr(blending, "ANSWERS", 3)
    found = read_kind(write_pairs(tmp_path / "proofs.jsonl", "proofs"))
    assert sorted(map(part_of, found.topics["qid"])) == ["test", "test", "validation", "validation"]
    documents = [document["docno"] for document in found.documents()]
    assert len(documents) == 3
    assert set(found.qrels["docno"]) <= set(documents)
