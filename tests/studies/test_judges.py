"""Outside judges: collections in BEIR's layout, searched by BM25, models and the engine's score."""

import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from mathamr_systems.experiments.systems import BASELINES, STRUCTURED, TUNED
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import BeirDataset
from pyterrier_mathamr.engine import SearchEngine
from studies.__main__ import main
from studies.protocol import judges
from studies.protocol.judges import FOUND, TESTS, names_of, read_judge, run_judges
from studies.protocol.parts import Parts

MINI = "mathamr-plus-mini"
TEXTS = {
    "sum": "The sum of a geometric series $\\sum_k q^k$ is $\\frac{1}{1-q}$.",
    "prime": "There are infinitely many primes $p$.",
    "limit": "The limit of $\\frac{\\sin x}{x}$ at zero is one.",
}


def write_judge(folder: Path, queries: dict[str, str], rows: list[tuple[str, str]]) -> Path:
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", TEXTS), ("queries", queries)):
        lines = (json.dumps({"_id": own, "text": text}) for own, text in texts.items())
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    judged = ["query-id\tcorpus-id\tscore", *(f"{qid}\t{docno}\t1" for qid, docno in rows)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(judged) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    proofs = {"sum": "a geometric series", "prime": "infinitely many primes"}
    terms = {"a": "geometric series", "b": "limit at zero"}
    return [
        write_judge(tmp_path / "proofs", proofs, [(qid, qid) for qid in proofs]),
        write_judge(tmp_path / "terms", terms, [("a", "sum"), ("b", "prime")]),
    ]


def test_the_command_measures_words_a_model_and_the_engines_score(folders: list[Path], tmp_path: Path) -> None:
    work = tmp_path / "work"
    options = ["--model", MINI, "--workdir", str(work), "--quiet"]
    done = CliRunner().invoke(main, ["judges", *map(str, folders), *options])
    assert done.exit_code == 0, done.output
    kept = json.loads((work / "report.json").read_text())
    table = {row["name"]: row for row in kept["tables"][FOUND]}
    assert list(table) == [*BASELINES, STRUCTURED, *names_of(MINI)]
    assert table[TUNED]["proofs"] == 1  # a query finds the document with its id, since that is judged
    assert table[TUNED]["terms"] == 0.5  # "prime" shares no word with "limit at zero"
    assert table[TUNED]["mean"] == 0.75
    assert {row["collection"] for row in kept["tables"][TESTS]} == {"proofs", "terms"}
    again = run_judges(folders, work, models=[MINI], verbose=False)
    assert all(stage.resumed for stage in again.stages)


def test_the_engines_score_is_that_of_an_engine(folders: list[Path], tmp_path: Path) -> None:
    found = {}
    searched = judges.searched

    def keep(parts: Parts, model: str) -> dict[str, pd.DataFrame]:
        found.update(searched(parts, model))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judges, "searched", keep)
        run_judges(folders[1:], tmp_path / "work", models=[MINI], verbose=False)
    posts = ({"docno": docno, "text": text} for docno, text in TEXTS.items())
    engine = SearchEngine.build(posts, tmp_path / "e", model=MINI, bare_formulas=False, verbose=False)
    ranking = found[names_of(MINI)[1]]
    for qid, query in (("a", "geometric series"), ("b", "limit at zero")):
        ours = ranking[ranking["qid"] == qid].set_index("docno")["score"]
        theirs = engine.search(query, k=3, weak=True).set_index("docno")["score"]
        assert ours.index.tolist() == theirs.index.tolist()
        assert (100 * ours).tolist() == pytest.approx(theirs.tolist(), rel=1e-4)


def test_a_large_collection_is_asked_in_part_always_the_same(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(read_judge(BeirDataset(folders[0])).topics) == 2
    monkeypatch.setattr(judges, "MANY", 1)
    monkeypatch.setattr(judges, "QUERIES", 1)
    first, second = (read_judge(BeirDataset(folders[0])) for _ in range(2))
    assert first.topics["qid"].tolist() == second.topics["qid"].tolist()
    assert len(first.topics) == len(first.qrels) == 1


def test_one_name_is_refused_and_each_paraphrase_names_one_document(folders: list[Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="its own name"):
        run_judges([folders[0], folders[0]], tmp_path, models=[MINI], verbose=False)
    with pytest.raises(ConfigError, match="its own name"):
        run_judges(folders, tmp_path, models=["a/model", "b/model"], verbose=False)

    lines = (Path(judges.__file__).parent / "paraphrases.tsv").read_text(encoding="utf-8").splitlines()
    assert len({line.split("\t")[0] for line in lines}) == len(lines) == 60
    assert all(len(line.split("\t")) == 2 and line.split("\t")[1] == line.split("\t")[1].strip() for line in lines)


def test_the_questions_of_a_file_replace_those_of_a_folder(folders: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "asked.tsv"
    file.write_text('prime\tis there a largest "prime?\nlimit\tsine over its argument, at zero\n', encoding="utf-8")
    report = run_judges(folders[:1], tmp_path / "work", models=[MINI], questions=file, verbose=False)
    found = {row["name"]: row for row in report.tables[FOUND].to_dict("records")}
    assert found[TUNED]["proofs"] == 1
    assert set(report.values["proofs-by-query"]["qid"]) == {"asked-1", "asked-2"}
