"""Mining: no forbidden document, only training answers, the same result each time; answers known from links."""

import gzip
import json
from pathlib import Path

import pytest

from pyterrier_mathamr import GraphStore, MathAMR
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import graphs_from_sources, known_answers, known_item_split, linked_pairs, mine_negatives

TRAIN = [str(i) for i in range(100, 400) if known_item_split(str(i)) == "train"][:10]
OTHER = next(str(i) for i in range(100, 400) if known_item_split(str(i)) == "test")
WORDS = ("group", "limit", "matrix", "prime", "integral")


def row(post: str, kind: int, body: str, **attributes: str) -> str:
    more = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    return f'  <row Id="{post}" PostTypeId="{kind}" Body="&lt;p&gt;{body}&lt;/p&gt;" {more}/>'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten training questions with two answers each, two questions to each of five subjects; one test question.

    Question 0 is a duplicate of 1, 1 of 2, and 3 is related to 4; a second answer of each is in no pair.
    """
    path = tmp_path_factory.mktemp("arqmath")
    rows, pairs = [], []
    for i, question in enumerate([*TRAIN, OTHER]):
        word = WORDS[i % 5]
        tags = f"&lt;algebra&gt;&lt;{word}&gt;"
        rows.append(row(question, 1, f"How do I find the {word} number {i}?", Title=f"On a {word}", Tags=tags))
        for n in (1, 2):
            rows.append(row(f"{question}{n}", 2, f"The {word} is found by theorem {n}.", ParentId=question))
        pairs.append((question, f"{question}1"))
    (path / "Posts.V1.3.xml").write_text("<posts>\n" + "\n".join(rows) + "\n</posts>\n")
    (path / "pairs.tsv").write_text("question_id\tanswer_id\n" + "".join("\t".join(pair) + "\n" for pair in pairs))
    links = [(0, 1, "duplicate"), (2, 1, "duplicate"), (3, 4, "related"), (5, 5, "related")]
    lines = [f"{TRAIN[a]}\t{TRAIN[b]}\t{kind}\t\n" for a, b, kind in links]
    lines.append(f"{TRAIN[6]}\t{OTHER}\tduplicate\t\n")
    (path / "links.tsv").write_text("question_id\trelated_question_id\ttype\trelated_title\n" + "".join(lines))
    return path


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    return [(question, f"{question}1") for question in TRAIN]


@pytest.fixture(scope="module")
def graphs(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> GraphStore:
    return graphs_from_sources([folder], tmp_path_factory.mktemp("graphs") / "graphs.mathamr")


def answers_of(*numbers: int) -> set[str]:
    return {f"{TRAIN[i]}{n}" for i in numbers for n in (1, 2)}


def test_known_are_all_own_answers_linked_questions_and_their_answers(folder: Path) -> None:
    known = known_answers(folder, TRAIN)
    assert known[TRAIN[0]] == answers_of(0, 1, 2) | {TRAIN[1], TRAIN[2]}  # a duplicate's duplicate is one
    assert known[TRAIN[4]] == answers_of(3, 4) | {TRAIN[3]}  # related, the other way round
    assert known[TRAIN[5]] == answers_of(5)
    assert known_answers(folder / "pairs.tsv", TRAIN) == {}


def test_linked_questions_of_the_training_part_are_pairs_both_ways(folder: Path) -> None:
    duplicates = [(TRAIN[a], TRAIN[b]) for a, b in [(0, 1), (1, 0), (2, 1), (1, 2)]]
    assert linked_pairs(folder, "duplicate") == duplicates  # not the one with a question of the test part
    assert linked_pairs(folder, "all") == [*duplicates, (TRAIN[3], TRAIN[4]), (TRAIN[4], TRAIN[3])]
    assert linked_pairs(folder, "none") == linked_pairs(folder / "pairs.tsv", "all") == []


@pytest.mark.parametrize("miner", ["bm25", "model", "tags"])
def test_no_forbidden_document_is_mined_and_the_hard_ones_come_first(folder, pairs, graphs, miner) -> None:
    known = known_answers(folder, TRAIN)
    options = {"graphs": graphs, "model": MathAMR.from_pretrained("mathamr-plus-mini")}
    found = mine_negatives(miner, folder, pairs, known, **options)
    assert found == mine_negatives(miner, folder, pairs, known, **options)
    assert list(found) == TRAIN
    candidates = {answer for _, answer in pairs}
    for question, answer in pairs:
        assert found[question]
        assert set(found[question]) <= candidates - known[question] - {answer}
        assert len(set(found[question])) == len(found[question])
    if miner != "model":
        assert found[TRAIN[3]][0] == f"{TRAIN[8]}1"  # the other question about primes
    shallow = mine_negatives(miner, folder, pairs, known, depth=1, **options)
    assert shallow == {question: names[:1] for question, names in found.items()}


def test_bm25_mines_a_file_of_pairs_and_tags_refuse_it(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl.gz"
    texts = [f"Let ${i} x$ be a {word} again." for i, word in enumerate(WORDS * 2)]
    with gzip.open(path, "wt", encoding="utf-8") as out:
        for i, text in enumerate(texts):
            out.write(json.dumps({"qid": f"q{i}", "question": text, "aid": f"a{i}", "answer": text}) + "\n")
    pairs = [(f"q{i}", f"a{i}") for i in range(10)]
    found = mine_negatives("bm25", path, pairs, {"q0": ["a5"]})
    assert found["q1"][0] == "a6"
    assert "a5" not in found["q0"]
    for miner, reason in (("tags", "no tags"), ("random", "'random'"), ("model", "a model")):
        with pytest.raises(ConfigError, match=reason):
            mine_negatives(miner, path, pairs, {})
