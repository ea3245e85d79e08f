"""The tool that trains the syntax network: a short run, twice; its grammar of mathematics."""

import gzip
import random
import subprocess
import sys
from pathlib import Path

import pytest

from pyterrier_mathamr.amr.dependency.syntax import SyntaxNet, bundled_net, tokenize

TOOLS = Path(__file__).resolve().parents[3] / "tools" / "syntax"
sys.path.insert(0, str(TOOLS))  # the trainer is a script, not a part of the package

from mathematics import Grammar  # noqa: E402

SENTENCE = """\
1\tWe\twe\tPRON\tPRP\t_\t2\tnsubj\t_\t_
2\tproved\tprove\tVERB\tVBD\t_\t0\troot\t_\t_
3-4\tit's\t_\t_\t_\t_\t_\t_\t_\t_
3\tit\tit\tPRON\tPRP\t_\t2\tobj\t_\t_
4\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_
"""


def trained(folder: Path) -> dict[str, bytes]:
    treebank, output = folder / "ud", folder / "weights"
    treebank.mkdir(parents=True)
    for part in ("train", "dev", "test"):
        (treebank / f"en_ewt-ud-{part}.conllu.gz").write_bytes(gzip.compress(f"{SENTENCE}\n{SENTENCE}\n".encode()))
    command = [sys.executable, str(TOOLS / "train.py"), str(treebank), str(output), "--epochs", "1", "--drawn", "0"]
    subprocess.run(command, check=True, capture_output=True)
    return {path.name: path.read_bytes() for path in output.iterdir()}


@pytest.mark.slow
def test_one_seed_gives_the_same_bytes_and_weights_that_the_package_reads(tmp_path: Path) -> None:
    once = trained(tmp_path / "one")
    assert sorted(once) == ["syntax.json.gz", "syntax.npz"]
    assert trained(tmp_path / "two") == once
    net = SyntaxNet(tmp_path / "one" / "weights")
    assert net.tags == [".", "NN", "PRP", "VBD"]  # tags of the treebank, and of a formula
    assert net.relations == ["nsubj", "obj", "punct", "root"]
    [analysis] = net.analyze([["We", "proved", "it", "."]])
    assert (len(analysis.tags), len(analysis.relations), analysis.heads.count(-1)) == (4, 4, 1)


def test_the_grammar_draws_trees_with_one_root_in_words_that_the_package_cuts_alike() -> None:
    net = bundled_net()
    for tree in Grammar().sentences(500, random.Random(0)):
        assert tree.heads.count(-1) == 1
        for token in range(len(tree.heads)):
            for _ in tree.heads:
                token = tree.heads[token] if token >= 0 else token
            assert token == -1
        assert set(tree.tags) <= set(net.tags)
        assert set(tree.relations) <= set(net.relations)
        assert tokenize(" ".join(tree.words)) == tree.words


def test_a_line_of_the_grammar_is_a_tree_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "grammar.txt"
    path.write_text("# a comment\nS = NP:2:nsubj VI:0:root ./.:2:punct\nNP = the/DT:2:det NOUN:0\n\n"
                    "NOUN/NN : sum\nVI/VBZ : converges\n", "utf-8")  # fmt: skip
    [tree] = Grammar(path).sentences(1, random.Random(0))
    assert tree.words == ["The", "sum", "converges", "."]
    assert tree.tags == ["DT", "NN", "VBZ", "."]
    assert tree.heads == [1, 2, -1, 2]
    assert tree.relations == ["det", "nsubj", "root", "punct"]
