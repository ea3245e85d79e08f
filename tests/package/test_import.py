"""The package's face: what importing costs, and that every public name resolves."""

import subprocess
import sys

import pyterrier_mathamr as mathamr


def run(code: str) -> list[str]:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.splitlines()


ALONE = """
import sys, pyterrier_mathamr as mathamr
print([name for name in ("torch", "torch_geometric", "penman", "faiss", "jnius") if name in sys.modules])
import numpy as np
index = mathamr.MathAMRIndex("index")
index.indexer().index([{"docno": "d", "doc_embs": np.eye(2, dtype="float32")}])
print(len(index), "torch" in sys.modules)
"""


def test_neither_importing_nor_indexing_the_vectors_of_others_loads_torch(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(ALONE) == ["[]", "1 False"]


def test_every_public_name_resolves_and_is_listed_and_an_unknown_one_is_an_attribute_error() -> None:
    for name in mathamr.__all__:
        assert getattr(mathamr, name) is not None
    assert set(mathamr.__all__) <= set(dir(mathamr))
    assert not hasattr(mathamr, "no_such_thing")


WITHOUT = """
import importlib.abc, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch_geometric", "penman", "faiss"):
            raise ImportError(f"blocked {name}")

sys.meta_path.insert(0, Blocked())
import pyterrier as pt, pyterrier_mathamr as mathamr

def error(call):
    try:
        call()
    except mathamr.MathAMRError as error:
        return type(error).__name__, str(error).partition(" ")[0]

encode = mathamr.GraphBuilder() >> (model := mathamr.MathAMR.from_pretrained("mathamr-plus-mini")).query_encoder()
index = mathamr.MathAMRIndex("index")
(mathamr.GraphBuilder() >> model.doc_encoder() >> index.indexer()).index([{"docno": "a", "text": "Solve $x^2=1$."}])
graph = mathamr.graph.MathAMRGraph.from_penman("(a / b)")
print((encode >> index.colbert()).search("solve $x^2$")["docno"].tolist(), graph.to_penman())
print(pt.java.started(), "torch._dynamo" in sys.modules)
config = mathamr.MathAMRConfig(conv="torch_geometric.nn.RGATConv")
print(error(lambda: (encode >> index.colbert(exact=False)).search("solve $x^2$")))
print(error(graph.to_pyg), error(graph.amr.to_penman), error(lambda: mathamr.MathAMR.untrained(config, [graph])))
"""


def test_a_pipeline_starts_no_java_and_no_compiler_and_needs_no_extra(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(WITHOUT) == [
        "['a'] (a / b)",
        "False False",
        "('MissingExtraError', 'faiss')",
        " ".join(str(("MissingExtraError", name)) for name in ("torch_geometric", "penman", "torch_geometric")),
    ]
