"""Each rule from dependencies to AMR on one sentence: rule -> sentence -> graph."""

from pathlib import Path

import pytest

from pyterrier_mathamr.amr import DependencyAmrParser
from pyterrier_mathamr.amr.dependency.lexicon import by_rule

PARSER = DependencyAmrParser()

# a blank line between rules; each is its name, a sentence and its graph
TEXT = Path(__file__).with_name("rules.txt").read_text("utf-8")
RULES = {rule: (sentence, penman) for rule, sentence, penman in map(str.splitlines, TEXT.split("\n\n"))}


@pytest.mark.parametrize(("sentence", "penman"), RULES.values(), ids=RULES)
def test_a_rule_gives_its_graph(sentence: str, penman: str) -> None:
    assert PARSER.parse_sentences([sentence]) == [penman]


@pytest.mark.parametrize(
    ("word", "tag", "expected"),
    [("larger", "JJR", "large"), ("smallest", "JJS", "small"), ("biggest", "JJS", "big"), ("easier", "JJR", "easy"),
     ("simplest", "JJS", "simple"), ("finer", "JJR", "fine"), ("taller", "JJR", "tall"), ("closest", "JJS", "close"),
     ("denser", "JJR", "dense"), ("wider", "JJR", "wide"), ("older", "JJR", "old"), ("over", "JJR", "over")],
)  # fmt: skip
def test_compared_adjectives_have_their_plain_form(word: str, tag: str, expected: str) -> None:
    assert by_rule(word, tag) == expected
