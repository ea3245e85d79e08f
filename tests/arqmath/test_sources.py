"""Sources of posts and pairs: ARQMath folders and pair files."""

import shutil
from pathlib import Path

import pytest

import pyterrier_mathamr
from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.arqmath import (
    ARQMathCollection,
    ARQMathError,
    graphs_from_sources,
    known_item_split,
    read_documents,
    read_training_pairs,
)
from pyterrier_mathamr.arqmath.sources import count_documents, source_fingerprints
from pyterrier_mathamr.posts import DocumentError, accepted_posts

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"
LINE = '{"qid": "q", "question": "Is $x$?", "aid": "a", "answer": "Yes."}\n'


def test_a_question_with_two_answers_comes_once(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text(LINE + LINE.replace('"a"', '"b"'), encoding="utf-8")
    assert [document["docno"] for document in read_documents(file)] == ["q", "a", "b"]
    assert read_training_pairs(file) == ([("q", "a"), ("q", "b")], [])


@pytest.mark.parametrize("bad", ["{", "[]", '{"qid": "q"}', LINE.replace('"Yes."', "7")])
def test_a_bad_line_is_named_and_the_rest_is_read(tmp_path: Path, bad: str) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text(f"{bad}\n\n{LINE}", encoding="utf-8")
    with pytest.warns(MathAMRWarning, match=r"1 of 2 pairs were left out: .*pairs\.jsonl, line 1: "):
        assert read_training_pairs(file).train == [("q", "a")]
    file.write_text(f"{bad}\n", encoding="utf-8")
    for read in (read_training_pairs, lambda path: list(read_documents(path))):
        with pytest.raises(DocumentError, match=r"pairs\.jsonl, line 1: "):
            read(file)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ('{"question": "Is $x$?", "answer": "Yes."}', "no text. Give each line qid, question, aid, answer"),
        ('{"query": "Is $x$?", "positive": "Yes."}', "it is neither a pair nor a post. A pair has the texts qid"),
    ],
)
def test_a_record_that_is_not_a_pair_is_refused_with_an_example(tmp_path: Path, record: str, message: str) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text(record + "\n", encoding="utf-8")
    with pytest.raises(DocumentError, match=message):
        graphs_from_sources([file], tmp_path / "graphs")
    file.write_text(LINE, encoding="utf-8")
    assert len(graphs_from_sources([file], tmp_path / "graphs")) == 2


def test_posts_are_recognized_and_read_as_an_engine_reads_them(tmp_path: Path) -> None:
    file, notes = tmp_path / "posts.jsonl", tmp_path / "notes"
    file.write_text('\n{"docno": "p", "text": "so x²=1", "title": "On $t$"}\n{"id": 7, "markdown": "*no*"}\n')
    notes.mkdir()
    (notes / "a.tex").write_text(r"\title{T} Let $y$.")
    (notes / "b.md").write_text("text")
    for source in (file, notes):
        documents = [document.record() for document in accepted_posts(source)]
        assert list(read_documents(source)) == documents
        assert len(documents) == 2
        assert count_documents(source) == (2 if source == file else None)  # files are not read to count their posts
    assert [document["docno"] for document in read_documents(file)] == ["p", "7"]
    assert list(source_fingerprints([notes])) == ["source 1, notes/a.tex", "source 1, notes/b.md"]


def test_the_documents_of_each_kind_of_source_are_counted_without_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text(LINE + LINE.replace('"a"', '"b"') + "[]\n", encoding="utf-8")
    assert count_documents(file) == 3
    assert count_documents(SAMPLE) == sum(1 for _ in read_documents(SAMPLE))
    collection = ARQMathCollection(SAMPLE)
    assert collection.count_answers() == sum(1 for _ in collection.answers())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it holds no posts"),
        ("\n\n", "it holds no posts"),
        ('{"docno": "a", "content": "x"}\n' * 2, "line 1: no text; .*; none of 2 posts can be read"),
        ("\x00\xff{{{\n", "line 1: this is not JSON"),
    ],
)
def test_an_unreadable_file_is_an_error(tmp_path: Path, content: str, message: str) -> None:
    file, empty = tmp_path / "posts.jsonl", tmp_path / "empty"
    empty.mkdir()
    file.write_text(content, encoding="latin-1")
    with pytest.raises(DocumentError, match=message):
        list(read_documents(file))
    with pytest.raises(DocumentError, match="has no notes"):
        list(read_documents(empty))
    with pytest.raises(ARQMathError, match="nowhere"):
        next(read_documents(tmp_path / "nowhere"))


def test_test_questions_of_a_folder_are_never_among_the_training_pairs() -> None:
    pairs = read_training_pairs(SAMPLE)
    assert {known_item_split(question) for question, _ in pairs.train} == {"train"}
    assert {known_item_split(question) for question, _ in pairs.validation} == {"validation"}


def test_each_file_that_graphs_are_made_from_is_identified_by_its_content(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SAMPLE, tmp_path / "sample"))
    file = tmp_path / "pairs.jsonl"
    file.write_text(LINE, encoding="utf-8")
    found = source_fingerprints([file, folder])
    table = "source 2, sample/slt_representation_v3/1.tsv"
    assert list(found) == ["source 1, pairs.jsonl", "source 2, sample/Posts.V1.3.xml", table]
    moved = Path(shutil.copytree(folder, tmp_path / "elsewhere" / "sample"))
    assert source_fingerprints([file, moved]) == found
    with open(folder / "slt_representation_v3" / "1.tsv", "a", encoding="utf-8") as out:
        out.write("\n")
    again = source_fingerprints([file, folder])
    assert [name for name in found if found[name] != again[name]] == [table]
    with pytest.raises(ARQMathError, match="nowhere"):
        source_fingerprints([tmp_path / "nowhere"])


def test_trees_of_other_tables_are_never_reused(tmp_path: Path) -> None:
    one, other = (Path(shutil.copytree(SAMPLE, tmp_path / name)) for name in ("one", "other"))
    for folder in (one, other):  # a few posts are enough
        posts = folder / "Posts.V1.3.xml"
        lines = posts.read_text(encoding="utf-8").splitlines(keepends=True)
        posts.write_text("".join([*lines[:40], lines[-1]]), encoding="utf-8")
    table = other / "slt_representation_v3" / "1.tsv"
    table.write_text(table.read_text(encoding="utf-8").replace("<mi>x</mi>", "<mi>q</mi>"), encoding="utf-8")
    store = graphs_from_sources([one], tmp_path / "out")
    ids, before = store.ids(), store.get_many(store.ids())
    after = graphs_from_sources([other], tmp_path / "out").get_many(ids)
    assert after != before
    assert after == graphs_from_sources([other], tmp_path / "rebuilt").get_many(ids)
