"""Count the functions and modules of the package that a query, a post and an update pass: ``python tools/ways.py``.

Each way is first taken to load and compile what it needs, and then traced. A function counts once, however often it is
called, and comprehensions and lambdas count with the function around them.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

import pandas as pd
import pyterrier as pt

import pyterrier_mathamr as mathamr
from pyterrier_mathamr.engine import SearchEngine

PACKAGE = str(Path(mathamr.__file__).parent)
FIRST = ["a sum of squares", r"What is $\sum_{n=1}^\infty 1/n^2$, and why?"]  # the scan is compiled for the second
QUESTION = r"How do I compute $\int_0^\infty e^{-x^2}\,dx$ by hand?"


def passed(way: Callable[[], object]) -> set[CodeType]:
    """Return the functions of the package that a call runs, also in other threads that it starts."""
    found = set[CodeType]()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            found.add(code)

    sys.setprofile(note)
    try:
        way()
    finally:
        sys.setprofile(None)
    return found


def main() -> None:
    """Print a row for each way."""
    sample = pt.get_dataset("arqmath:sample/task1")
    posts = list(sample.get_corpus_iter())
    with tempfile.TemporaryDirectory() as place:
        engine = SearchEngine.build(posts, Path(place) / "sample.engine", verbose=False)
        model = mathamr.MathAMR.from_pretrained()
        graphs = mathamr.GraphBuilder(reads=model.reads)
        index = mathamr.MathAMRIndex(Path(place) / "sample.mathamr")
        (graphs >> model.doc_encoder() >> index.indexer()).index(posts)
        search = graphs >> model.query_encoder() >> index.colbert()

        def ask(text: str) -> None:
            search(pd.DataFrame({"qid": ["1"], "query": [text]}))

        def update(text: str) -> None:
            engine.update([{**posts[0], "html": f"<p>{text}</p>"}, *posts[1:]], verbose=False)

        ways: dict[str, list[Callable[[], object]]] = {
            "engine.search": [lambda: list(map(engine.search, FIRST)), lambda: engine.search(QUESTION)],
            "encode >> colbert()": [lambda: list(map(ask, FIRST)), lambda: ask(QUESTION)],
            "an update of one record": [lambda: update("One."), lambda: update("Two $x^2$.")],
        }
        print("| way | functions | modules |\n|---|---:|---:|")
        for name, (first, second) in ways.items():
            first()
            found = passed(second)
            print(f"| `{name}` | {len(found)} | {len({code.co_filename for code in found})} |", flush=True)


if __name__ == "__main__":
    main()
