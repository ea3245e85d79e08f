"""Each rule for bad rows, shown by the fixture that bears its code; in each, the rows around the bad one are read."""

import pickle
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.arqmath import (
    RULES,
    BadRowWarning,
    read_answers,
    read_dump,
    read_manual_topics,
    read_pairs,
    read_qrels,
    read_run,
    read_topics,
)
from pyterrier_mathamr.arqmath import dump as row_reader
from pyterrier_mathamr.arqmath.dump import read_links

DATA = Path(__file__).parent / "data"


def rows_of(frame: Callable[[Path], Any], *columns: str) -> Callable[[Path], Iterator[Any]]:
    return lambda path: frame(path)[[*columns]].itertuples(index=False)


RUN, ANSWERS = rows_of(read_run, "qid", "docno"), rows_of(read_answers, "qid", "sources")

# code: reader, the first or second column of what is read, the line that is reported
CASES: dict[str, tuple[Callable[[Path], Iterator[Any]], list[str], int]] = {
    "P101": (read_dump, ["1", "3"], 4),
    "P102": (read_dump, ["1", "3"], 4),
    "P103": (read_dump, ["1", "3"], 4),
    "P104": (read_dump, ["1", "2", "3"], 4),
    "P105": (read_dump, ["1", "2", "3"], 4),
    "P106": (read_dump, ["1", "3"], 5),
    "P108": (read_dump, ["1", "3"], 4),
    "T201": (read_topics, ["A.1", "A.3"], 6),
    "T202": (read_topics, ["A.1", "A.3"], 6),
    "T203": (read_topics, ["A.1", "A.3"], 6),
    "T204": (read_topics, ["A.1", "A.3"], 6),
    "T205": (read_topics, ["A.1", "A.3"], 6),
    "T206": (
        rows_of(read_manual_topics, "qid"),
        ["A.1", "A.2", "A.3"],
        2,
    ),  # the entry; its topic is read
    "Q301": (read_qrels, ["5", "7"], 2),
    "Q302": (read_qrels, ["5", "7"], 2),
    "Q303": (read_qrels, ["5", "7"], 5),
    "Q304": (read_qrels, ["5", "7"], 2),
    "L401": (read_pairs, ["5", "7"], 3),
    "L402": (read_links, ["5", "7"], 4),
    "R501": (RUN, ["5", "7"], 2),
    "R502": (RUN, ["5", "7"], 2),
    "R503": (RUN, ["5", "7"], 3),
    "R504": (ANSWERS, ["5", "7"], 3),
    "R505": (ANSWERS, ["5", "7"], 2),
}


def read(code: str) -> tuple[list[Any], list[BadRowWarning]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = list(CASES[code][0](next(DATA.glob(f"{code}.*"))))
    return rows, [warning.message for warning in caught if isinstance(warning.message, BadRowWarning)]


@pytest.mark.parametrize("code", CASES)
def test_a_bad_row_is_reported_with_file_and_line_and_the_others_are_read(code: str) -> None:
    rows, reports = read(code)
    column = 0 if code[0] in "PT" else 1
    assert [row[column] for row in rows] == CASES[code][1]
    assert [(report.code, report.line) for report in reports] == [(code, CASES[code][2])]
    assert str(reports[0]).startswith(f"{next(DATA.glob(f'{code}.*'))}:{CASES[code][2]}: ")
    assert RULES[code] in str(reports[0])
    again = pickle.loads(pickle.dumps(reports[0]))  # from a worker process
    assert (str(again), again.line, again.code) == (str(reports[0]), reports[0].line, code)


def test_what_can_be_read_of_a_bad_row_is_kept() -> None:
    assert [post.score for post in read("P104")[0]] == [None, None, None], "no number is no score"
    assert read("P105")[0][1].body == "ab�c", "control characters are dropped, foreign bytes replaced"
    assert "2 lines with code 5, 1 lines with code 6" in str(read("Q303")[1][0]), "counted in one note"
    assert [qrel.relevance for qrel in read("Q304")[0]] == [3, 1], "the first judgment is kept"


def test_each_rule_has_a_fixture_and_each_fixture_a_rule() -> None:
    made_by_the_test_itself = {"P107"}  # 64 MiB
    assert {file.stem for file in DATA.iterdir()} == set(RULES) - made_by_the_test_itself
    assert set(CASES) == set(RULES) - made_by_the_test_itself


def test_a_row_beyond_the_limit_is_skipped_without_being_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_reader, "CHUNK", 512)
    monkeypatch.setattr(row_reader, "MAX_ROW", 2048)
    file = tmp_path / "Posts.xml"
    good, body = '<row Id="{}" PostTypeId="2"/>\n', "x\n" * 5000
    file.write_text(f'<posts>\n{good.format(1)}<row Id="2" Body="{body}"/>\n{good.format(3)}</posts>')
    with pytest.warns(BadRowWarning, match="P107") as caught:
        assert [post.id for post in read_dump(file)] == ["1", "3"]
    assert caught[0].message.line == 3  # type: ignore[union-attr]


def test_only_the_first_twenty_bad_rows_are_reported_one_by_one(tmp_path: Path) -> None:
    file = tmp_path / "qrels.txt"
    file.write_text("bad\n" * 50 + "A.1 0 5 1\n")
    with pytest.warns(MathAMRWarning) as caught:
        assert len(list(read_qrels(file))) == 1
    assert len(caught) == 21
    assert "30 more bad rows" in str(caught[-1].message)
