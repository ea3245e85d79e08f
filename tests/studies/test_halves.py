"""A half of the rows that reads formulas as graphs without letters, and what it adds to text."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from studies.__main__ import main
from studies.notation.halves import FOUND, TESTS, VARIANTS, GraphHalf, Vocabulary, batch_of, scored
from studies.notation.letters import renamed
from tests.studies.test_blending import write_pairs

TEXTS = {
    "a": r"If $x^2+y^2=z^2$ and $x<z$, then $y$ is real.",
    "b": r"The sum $\sum_{n=1}^\infty \frac{1}{n^2}$ is $\frac{\pi^2}{6}$.",
    "c": r"No formula.",
    "d": r"$e^{i\pi}+1=0$, and $x^2-y^2=(x-y)(x+y)$.",
}


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary({f"{name}{copy}": text for name, text in TEXTS.items() for copy in range(4)})


def network_of(vocabulary: Vocabulary) -> GraphHalf:
    torch.manual_seed(1)
    return GraphHalf(len(vocabulary)).eval()


@pytest.mark.parametrize("variant", VARIANTS)
def test_other_letters_change_nothing_unless_letters_are_read(variant: str, vocabulary: Vocabulary) -> None:
    network, half = network_of(vocabulary), VARIANTS[variant]
    written, other = (
        scored(network, vocabulary, half, {"q": text}, TEXTS).to_numpy()
        for text in (TEXTS["a"], renamed(TEXTS["a"], "seed"))
    )
    assert np.allclose(written, other, atol=1e-5) == (not half.letters)


def test_a_variable_of_a_post_is_one_node(vocabulary: Vocabulary) -> None:
    batch = batch_of([TEXTS["a"]], vocabulary, VARIANTS["graph"])
    assert int((batch.labels[batch.nodes.unique()] == 0).sum()) == 3  # x, y and z
    both = batch_of([TEXTS["a"], TEXTS["a"]], vocabulary, VARIANTS["graph"])
    assert len(both.nodes.unique()) == 2 * len(batch.nodes.unique())


@torch.no_grad()
def test_scores_are_the_best_matches_by_mass_and_the_product_of_posts(vocabulary: Vocabulary) -> None:
    network, half = network_of(vocabulary), VARIANTS["graph"]
    found = scored(network, vocabulary, half, TEXTS, TEXTS)
    alpha, beta = network.scales.exp().tolist()
    rows = {name: network(batch_of([text], vocabulary, half)) for name, text in TEXTS.items()}
    for query, document in ((q, d) for q in TEXTS for d in TEXTS):
        asked, held = rows[query], rows[document]
        best = (
            (asked.formulas @ held.formulas.T).clamp(min=0).amax(1)
            if len(held.formulas)
            else torch.zeros(len(asked.of))
        )
        mean = float((best * asked.masses).sum() / asked.masses.sum()) if len(asked.of) else 0.0
        wanted = alpha * mean + beta * float((asked.posts @ held.posts.T)[0, 0])
        assert found.loc[query, document] == pytest.approx(wanted, abs=1e-4)


def test_the_command_measures_what_is_added(tmp_path: Path) -> None:
    files = [write_pairs(tmp_path / f"{name}.jsonl", name, ("train", "validation", "test")) for name in ("one", "two")]
    arguments = ["halves", *map(str, files), "--model", "mathamr-plus-mini", "--workdir", str(tmp_path / "work")]
    arguments += ["--seed", "1", "--seed", "2", "--steps", "2", "--quiet"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "work" / "mathamr-plus-mini-halves" / "report.json").read_text())
    names = [row["name"] for row in report["tables"][FOUND]]
    added = ["structures", "canonical letters", *VARIANTS]
    assert names == [base + end for base in ("text", "words and text") for end in ("", *(f", {one}" for one in added))]
    assert {row["letters"] for row in report["tables"][TESTS]} == {"as written", "renamed"}
    again = CliRunner().invoke(main, arguments)
    assert again.exit_code == 0, again.output
    stages = json.loads((tmp_path / "work" / "mathamr-plus-mini-halves" / "report.json").read_text())["stages"]
    assert all(stage["resumed"] for stage in stages if stage["name"].startswith("training"))
