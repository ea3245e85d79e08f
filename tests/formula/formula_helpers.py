"""Helpers of the formula tests: trees as bracket strings, and the rows of the reference converter."""

import gzip
import json
import os
from pathlib import Path

SHARED = Path(os.environ.get("MATHAMR_TEST_DATA", Path(__file__).resolve().parents[3] / "shared"))


def slt_brackets(tree):
    """Write a layout tree as Tangent-S does: ``[V!x[+[N!1]],a[N!2]]``."""
    children = tree.children()

    def write(node):
        kids = dict(children[node])
        following = write(kids["n"]) if "n" in kids else ""
        others = "".join(f",{edge}{write(kids[edge])}" for edge in "aboucdwe" if edge in kids)
        return f"[{tree.nodes[node]}{following}{others}]"

    return write(0)


def opt_brackets(tree):
    """Write an operator tree as Tangent-S does: ``[U!plus,0[V!𝑥],1[N!1]]``."""
    children = tree.children()

    def write(node):
        return f"[{tree.nodes[node]}" + "".join(f",{i}{write(c)}" for i, (_, c) in enumerate(children[node])) + "]"

    return write(0)


def conformance_rows(name="topics"):
    """Read the rows of the reference converter; none where the data is absent."""
    path = SHARED / "formula-conformance" / f"{name}.jsonl.gz"
    if not path.is_file():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
