"""Small graphs to store, and what tests look at in a store's folder."""

from folder_bytes import folder_bytes

from pyterrier_mathamr.amr import decode_penman
from pyterrier_mathamr.graph import MathAMRGraph


def graph(i):
    return MathAMRGraph(decode_penman(f"(a / thing-{i} :quant {i})"), (), str(i))


def rows(*numbers):
    return [{"docno": str(i), "graph": graph(i)} for i in numbers]


def dies_after(items):
    yield from items
    raise KeyboardInterrupt


def files(path):
    """Every file of a store by its place in the folder."""
    if path.is_file():
        return {"": path.read_bytes()}
    return folder_bytes(path)
