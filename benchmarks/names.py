"""How often an engine of notes finds a statement by its printed name: first, and among three.

    python benchmarks/names.py ENGINE

Each name in parentheses, as in *Theorem 3.2 (Fatou's lemma)*, is a question, unless several statements have it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from pyterrier_mathamr import SearchEngine
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr.engine.posts import PRINTED, normalized
from pyterrier_mathamr.formula.display.typesetting import text_of
from pyterrier_mathamr.posts import post_from_html

AMONG = 3


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("engine", type=Path)
    at = SearchEngine(parser.parse_args().engine).snapshot()
    names: dict[str, str] = {}
    for post in at.indexes.posts:
        printed = PRINTED.fullmatch(text_of(post_from_html(post.title))) if post.origin.kind else None
        if printed and printed["name"]:
            names[post.docno] = printed["name"]
    of_each = Counter(map(normalized, names.values()))
    asked = {docno: name for docno, name in names.items() if of_each[normalized(name)] == 1}
    bm25 = at.bm25(num_results=AMONG)
    ranks: dict[str, list[int]] = {"engine": [], "BM25, tuned for mathematics": []}
    for docno, name in progress(asked.items(), "asking", "names", verbose=True, total=len(asked)):
        found = at.search(name, AMONG, weak=True)["docno"], bm25(at.frame(name))["docno"]
        for own, docnos in zip(ranks.values(), map(list, found), strict=True):
            own.append(docnos.index(docno) if docno in docnos else AMONG)
    print(f"{len(asked)} names of statements\n\n| | first | among {AMONG} |\n|---|---|---|")
    for system, own in ranks.items():
        first, among = (sum(rank < limit for rank in own) / max(len(own), 1) for limit in (1, AMONG))
        print(f"| {system} | {first:.1%} | {among:.1%} |")


if __name__ == "__main__":
    main()
