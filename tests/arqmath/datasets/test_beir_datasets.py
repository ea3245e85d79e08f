"""``mathamr-beir:FOLDER``: collections in BEIR's layout."""

import configparser
import gzip
import importlib
import json
from collections.abc import Callable
from pathlib import Path

import pyterrier as pt
import pytest

import pyterrier_mathamr
from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr.arqmath import BeirDataset, BeirProvider
from pyterrier_mathamr.posts import BeirFolder, DocumentError

CORPUS = [{"_id": "d1", "title": "Limits", "text": "Let $f$ be."}, {"_id": "d2", "text": "So $x<1$.", "metadata": {}}]
WHOLE_QUERIES = [{"_id": "q1", "text": "Is $f$ bounded?"}, {"_id": "q2", "text": "Not judged?"}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "qrels").mkdir()
    for name, records in (("corpus", CORPUS), ("queries", WHOLE_QUERIES)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td2\t2\n", encoding="utf-8")
    return tmp_path


def test_documents_topics_and_judgments_equal_the_files(folder: Path) -> None:
    dataset = BeirDataset(folder)
    assert list(dataset.get_corpus_iter(verbose=False)) == [
        {"docno": "d1", "title": "Limits", "text": "Let $f$ be."},
        {"docno": "d2", "text": "So $x<1$."},
    ]
    topics, qrels = dataset.get_topicsqrels()
    assert topics.to_dict("records") == [{"qid": "q1", "query": "Is $f$ bounded?"}]
    assert qrels.to_dict("records") == [{"qid": "q1", "docno": "d2", "label": 2}]
    assert dataset.folder.count() == 2


def test_pyterrier_finds_the_provider_by_the_name_of_the_entry_point(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = configparser.ConfigParser()
    setup.read(Path(pyterrier_mathamr.__file__).parents[1] / "setup.cfg")
    if not setup.has_section("options.entry_points"):
        pytest.skip("this is not a checkout, which has setup.cfg")
    lines = setup["options.entry_points"]["pyterrier.dataset_provider"].strip().splitlines()
    module, _, name = dict(line.split(" = ") for line in lines)["mathamr-beir"].partition(":")
    provider = getattr(importlib.import_module(module), name)
    assert provider is BeirProvider
    loaded = importlib.import_module("pyterrier.datasets._core")._loaded_providers
    monkeypatch.setitem(loaded, "mathamr-beir", provider())
    dataset = pt.get_dataset(f"mathamr-beir:{folder}")
    assert dataset.get_topics().qid.tolist() == ["q1"]
    with pytest.raises(KeyError, match="mathamr-beir"):
        pt.get_dataset(f"mathamr-beir:{folder / 'qrels'}")


def test_a_missing_file_is_named(folder: Path) -> None:
    assert BeirFolder.found(folder)
    (folder / "queries.jsonl").unlink()
    assert not BeirFolder.found(folder)
    with pytest.raises(KeyError, match=r"queries\.jsonl"):
        BeirProvider().get_dataset(str(folder))


def test_gzipped_files_are_read_and_a_line_that_is_not_a_document_is_left_out_with_a_warning(folder: Path) -> None:
    for name in ("corpus", "queries"):
        file = folder / f"{name}.jsonl"
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(file.read_bytes() + b'{"_id": 3, "text": "x"}\n'))
        file.unlink()
    assert BeirFolder.found(folder)
    with pytest.warns(MathAMRWarning, match="line 3"):
        assert [document["docno"] for document in BeirFolder(folder).documents()] == ["d1", "d2"]


@pytest.mark.parametrize(
    ("line", "read"),
    [("q1\td1\t1.0", [("q1", "d1", 1)]), ("q1\td1\t1", [("q1", "d1", 1)]), ("", [])],
)
def test_judgments_may_have_no_header_and_grades_may_have_a_point_and_other_lines_are_named(
    folder: Path, line: str, read: list[tuple[str, str, int]]
) -> None:
    file = folder / "qrels" / "test.tsv"
    file.write_text(f"{line}\n", encoding="utf-8")
    assert list(BeirFolder(folder).judgments()) == read
    for wrong in ("q1\td1", "q1\td1\tgood", "q1 d1 1"):
        file.write_text(f"query-id\tcorpus-id\tscore\n{wrong}\n", encoding="utf-8")
        with pytest.raises(DocumentError, match=r"test\.tsv, line 2"):
            list(BeirFolder(folder).judgments())


def test_a_split_is_test_or_the_only_one_or_asked_for(folder: Path) -> None:
    def rename(name: str) -> Callable[[], str]:
        (folder / "qrels" / "test.tsv").rename(folder / "qrels" / f"{name}.tsv")
        return BeirFolder(folder).split

    assert BeirFolder(folder).split() == "test"
    split = rename("dev")
    assert split() == "dev"
    (folder / "qrels" / "train.tsv").write_text("q2\td1\t1\n", encoding="utf-8")
    assert BeirDataset(folder).get_topics("train").qid.tolist() == ["q2"]
    with pytest.raises(ConfigError, match="dev, train"):
        BeirFolder(folder).split()
    for file in (folder / "qrels").iterdir():
        file.unlink()
    with pytest.raises(DocumentError, match="judgments"):
        BeirFolder(folder)
