"""The reader of the posts' dump: what it reads, and what hostile files do to it."""

import gzip
import tracemalloc
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pyterrier_mathamr.arqmath import ARQMathError, BadRowWarning, Post, read_dump
from pyterrier_mathamr.arqmath import dump as row_reader
from pyterrier_mathamr.arqmath.dump import SeenIds

GOOD = '<row Id="{}" PostTypeId="2" ParentId="1" Body="b"/>\n'


def write(path: Path, *rows: str) -> Path:
    path.write_text("<?xml version='1.0'?>\n<posts>\n" + "".join(rows) + "</posts>\n", encoding="utf-8")
    return path


def ids(path: Path) -> list[str]:
    return [post.id for post in read_dump(path)]


def test_all_attributes_of_a_question_and_an_answer_are_read(release: Path) -> None:
    question, negative, answer, *_ = read_dump(release / "Collection/Posts.V1.3.xml")
    assert question == Post(
        id="10",
        kind="question",
        title='Why is <span class="math-container" id="1">2<3</span>?',
        body="<p>I do not see it.</p>",
        tags=("inequality", "order-theory"),
        parent_id="",
        accepted_answer_id="12",
        score=7,
        date="2011-02-03T04:05:06.070",
    )
    assert (negative.score, negative.parent_id, negative.title) == (-2, "10", "")
    assert (answer.score, answer.date, answer.tags, answer.accepted_answer_id) == (None, None, (), "")


def test_rows_of_any_shape_are_read_and_other_kinds_of_post_are_passed_over_in_silence(tmp_path: Path) -> None:
    file = tmp_path / "p.xml"
    least = Post("1", "question", "", "", (), "", "", None, None)
    assert list(read_dump(write(file, '<row Id="1" PostTypeId="1"/>'))) == [least]
    assert ids(write(file, GOOD.format(1), '<row Id="2" PostTypeId="5"/>', GOOD.format(3))) == ["1", "3"]
    assert ids(write(file, GOOD.format(1), "<!-- <row Id='2' PostTypeId='2'/> -->\n", GOOD.format(3))) == ["1", "3"]
    write(file, '<row Id="1"\n PostTypeId="2"\n Body="a\nb"></row>\n', GOOD.format(2))
    assert [(post.id, post.body) for post in read_dump(file)] == [("1", "a b"), ("2", "b")]
    assert ids(write(file)) == []
    file.write_text("<posts/>")
    assert ids(file) == []


def test_the_line_of_a_bad_row_counts_the_lines_inside_the_rows_before(tmp_path: Path) -> None:
    file = write(tmp_path / "p.xml", '<row Id="1"\n\n PostTypeId="2"/>\n\n', "<row Body='no id'/>\n")
    with pytest.warns(BadRowWarning) as caught:
        assert ids(file) == ["1"]
    assert caught[0].message.line == 7  # type: ignore[union-attr]


@pytest.mark.parametrize("chunk", [1, 64, 1000])
def test_neither_the_size_of_the_chunks_read_nor_compression_changes_anything(
    release: Path, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = release / "Collection/Posts.V1.3.xml"
    whole = list(read_dump(file))
    monkeypatch.setattr(row_reader, "CHUNK", chunk)
    assert list(read_dump(file)) == whole
    packed = file.with_name("Posts.V1.3.xml.gz")
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert list(read_dump(packed)) == whole


def test_a_gzipped_dump_cut_short_gives_what_could_be_unpacked(tmp_path: Path) -> None:
    file = tmp_path / "p.xml.gz"
    text = "<posts>\n" + "".join(f'<row Id="{i}" PostTypeId="2" Body="{i * i:x}"/>\n' for i in range(5000)) + "</posts>"
    file.write_bytes(gzip.compress(text.encode())[:-20_000])
    with pytest.warns(BadRowWarning, match="P106"):
        read = ids(file)
    assert 0 < len(read) < 5000
    assert read == [str(i) for i in range(len(read))]
    file.write_text("<posts></posts>")
    with pytest.raises(ARQMathError, match=r"p\.xml\.gz:1: .*not a gzip"):
        ids(file)


@pytest.mark.filterwarnings("ignore::pyterrier_mathamr._common.errors.MathAMRWarning")
def test_a_dump_cut_anywhere_gives_the_posts_before_the_cut(release: Path, tmp_path: Path) -> None:
    file = tmp_path / "p.xml"
    whole = (release / "Collection/Posts.V1.3.xml").read_bytes()
    begins = whole.index(b"<posts>") + 7
    for cut in range(begins, len(whole), 23):
        file.write_bytes(whole[:cut])
        assert ids(file) == [str(10 + i) for i in range(whole[:cut].count(b"/>"))]


@pytest.mark.parametrize("text", ["", "not xml", "<html><body>Sign in to continue</body></html>", "PK\x03\x04"])
def test_a_file_that_is_not_a_dump_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "Posts.xml").write_text(text)
    with pytest.raises(ARQMathError, match=r"Posts\.xml:1: .*not a dump"):
        ids(tmp_path / "Posts.xml")


def test_entities_are_not_expanded(tmp_path: Path) -> None:
    file = tmp_path / "p.xml"
    file.write_text(
        '<!DOCTYPE posts [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>\n<posts>\n'
        f'<row Id="1" PostTypeId="2" Body="&b;"/>\n{GOOD.format(2)}</posts>'
    )
    with pytest.warns(BadRowWarning, match="P101"):
        assert ids(file) == ["2"]


def test_a_body_of_a_megabyte_and_more_is_read_whole(tmp_path: Path) -> None:
    body = "&lt;p&gt;x &amp;amp; y&lt;/p&gt;" * 100_000
    posts = list(read_dump(write(tmp_path / "p.xml", f'<row Id="1" PostTypeId="2" Body="{body}"/>', GOOD.format(2))))
    assert [len(post.body) for post in posts] == [100_000 * len("<p>x &amp; y</p>"), 1]


XML_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(XML_TEXT, XML_TEXT), max_size=5))
def test_any_text_written_as_xml_is_read_back(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    lines = [
        f'<row Id="{i}" PostTypeId="1" Title={quoteattr(title)} Body={quoteattr(body)}/>\n'
        for i, (title, body) in enumerate(rows)
    ]
    file = write(tmp_path / "p.xml", *lines)
    assert [(post.title, post.body) for post in read_dump(file)] == rows


@settings(max_examples=40, deadline=None)
@example(["1", "01", "0", "00", "²"])
@given(st.lists(st.one_of(st.integers(0, 10**9).map(str), st.text(max_size=4))))
def test_seen_ids_behave_as_a_set(items: list[str]) -> None:
    seen, model = SeenIds(), set[str]()
    for item in items:
        assert seen.add(item) == (item not in model)
        model.add(item)
        assert item in seen
    assert bool(seen) == bool(model)


def test_memory_does_not_grow_with_the_number_of_posts(tmp_path: Path) -> None:
    rows = (f'<row Id="{i}" PostTypeId="2" Body="{"x" * 2000}"/>\n' for i in range(4000))
    file = write(tmp_path / "p.xml", *rows)
    tracemalloc.start()
    try:
        peaks = []
        for number, _ in enumerate(read_dump(file), 1):
            if number % 2000 == 0:
                peaks.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.reset_peak()
    finally:
        tracemalloc.stop()
    assert file.stat().st_size > 8_000_000
    assert max(peaks) < 6_000_000
    assert peaks[1] < peaks[0] + 100_000
