"""Small posts with words and formulas, and a configuration that trains on them in a moment."""

import random

import pytest

from pyterrier_mathamr.graph import MathAMRGraph, Vocabulary
from pyterrier_mathamr.model import MathAMR, MathAMRConfig
from pyterrier_mathamr.model.networks import random_network

TOPICS = ("group", "limit", "matrix", "prime", "integral", "graph", "proof", "sequence")


def post(name: str, topic: str, rng: random.Random) -> MathAMRGraph:
    """One post of one or two sentences about a topic, with one or two formulas."""
    formulas = [
        f"(f{i} / FORMULA_{i} :opt (o{i} / U!plus :op0 (p{i} / V!{rng.choice('xyz')}) "
        f":op1 (q{i} / N!{rng.randint(1, 9)}))"
        f" :slt (s{i} / V!x :slt-n (t{i} / +)))"
        for i in range(rng.randint(1, 2))
    ]
    sentences = [
        f"(h{i} / {rng.choice(['have-03', 'show-01', 'solve-01'])} :ARG0 (i{i} / person) "
        f":ARG1 (c{i} / {topic}) :ARG2 {formula})"
        for i, formula in enumerate(formulas)
    ]
    snts = " ".join(f":snt{i + 1} {sentence}" for i, sentence in enumerate(sentences))
    ids = ", ".join(f'"FORMULA_{i}": "{name}-{i}"' for i in range(len(formulas)))
    text = sentences[0] if len(sentences) == 1 else f"(m / multi-sentence {snts})"
    return MathAMRGraph.from_penman(f"# ::id {name}\n# ::formula_map {{{ids}}}\n{text}")


@pytest.fixture(scope="session")
def graphs() -> dict[str, MathAMRGraph]:
    """24 questions q0… and their answers a0…, three of each topic."""
    rng = random.Random(7)
    made = {}
    for i in range(24):
        made[f"q{i}"] = post(f"q{i}", TOPICS[i % 8], rng)
        made[f"a{i}"] = post(f"a{i}", TOPICS[i % 8], rng)
    return made


@pytest.fixture(scope="session")
def pairs() -> list[tuple[str, str]]:
    return [(f"q{i}", f"a{i}") for i in range(24)]


@pytest.fixture(scope="session")
def vocabulary(graphs) -> Vocabulary:
    return Vocabulary.build(graphs.values(), min_role_count=1)


@pytest.fixture(scope="session")
def small() -> MathAMRConfig:
    return MathAMRConfig(
        layers=2, hidden=16, projection=8, bases=4, batch_size=8, epochs=3, learning_rate=3e-3, vocabulary_size=200
    )


@pytest.fixture(scope="session")
def model(small, vocabulary) -> MathAMR:
    """A model with random weights."""
    return MathAMR(small, vocabulary, random_network(small, vocabulary).state_dict())
