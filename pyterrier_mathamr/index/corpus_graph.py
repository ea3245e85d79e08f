"""The nearest documents of each document of an index, as files that ``pyterrier_adaptive`` reads, too.

::

    documents in order ──blocks──▶ workers: candidates, symmetric MaxSim ──▶ edges, weights   appended, so resumable
                                                                          └─▶ the folder of a CorpusGraph, in one step

The symmetric MaxSim of two documents is the mean of both directions, each for a row of its query side::

    s(A, B) = ½ (S(A, B) / |A| + S(B, A) / |B|)         in [-1, 1] for rows of unit length

Candidates are all documents, or those whose VIRTUAL_DOCUMENT is nearest. Either way they are scored in float64, ties
by docno. The folder has ``pt_meta.json``, ``docnos.npids`` (documents in order), ``edges.u32.np`` and
``weights.f16.np`` (uint32 and float16 ``[m, k]``); a document with fewer than ``k`` neighbors repeats itself.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.parameters import COUNT, ByPath, artifact_name
from pyterrier_mathamr._common.running.processes import Executor, Processes
from pyterrier_mathamr.store import (
    META,
    DamagedError,
    NotBuiltError,
    OtherArtifactError,
    differences,
    replace_file,
    sync_tree,
    write_id_file,
    writer_lock,
    writing,
)

from .backend import Backend, ExactScores, How, Numbers, QueryBatch, Rows
from .errors import MathAMRIndexError
from .search.maxsim import best_of

TYPE, FORMAT = "corpus_graph", "np_topk"
DOCNOS, EDGES, WEIGHTS = "docnos.npids", "edges.u32.np", "weights.f16.np"
_JOB = "job.json"

BLOCK = 64
"""Documents whose neighbors are found at once, and that are computed again after an interruption."""

_READ = 1024  # documents whose rows are compared with a block at once


class CorpusGraph(ByPath, pt.Artifact):  # type: ignore[misc]
    """The ``k`` nearest documents of each document of an index, made by ``index.corpus_graph(k)``.

    It is an artifact of the format ``corpus_graph.np_topk``, which ``pyterrier_adaptive`` makes and reads, too::

        graph = index.corpus_graph(16)
        graph.neighbors("d7")                                        # docnos, the nearest first
        pyterrier_adaptive.NpTopKCorpusGraph(graph.path)             # the same files

    Args:
        path: the folder.

    Raises:
        NotBuiltError: there is no graph. OtherArtifactError: something else is there. DamagedError: a file is cut off.
    """

    ARTIFACT_TYPE, ARTIFACT_FORMAT, ARTIFACT_PACKAGE_HINT = TYPE, FORMAT, "pyterrier-adaptive"

    @cached_property
    def meta(self) -> dict[str, Any]:
        """The description: ``k``, ``doc_count``, and of our graphs how they were made."""
        try:
            meta: dict[str, Any] = json.loads((self.path / META).read_bytes())
        except FileNotFoundError:
            raise NotBuiltError(self.path, "there is no corpus graph; index.corpus_graph(k) makes one") from None
        except ValueError as error:
            raise DamagedError(self.path / META, f"it is not JSON ({error})") from error
        if (meta.get("type"), meta.get("format")) != (TYPE, FORMAT):
            raise OtherArtifactError(self.path, f"it is a {meta.get('type')}.{meta.get('format')}, not a corpus graph")
        return meta

    @property
    def k(self) -> int:
        """The number of neighbors of each document."""
        return int(self.meta["k"])

    def __len__(self) -> int:
        """The number of documents."""
        return int(self.meta["doc_count"])

    def __bool__(self) -> bool:
        return True

    @cached_property
    def edges(self) -> npt.NDArray[np.uint32]:
        """The neighbors of each document, nearest first: uint32 ``[m, k]``."""
        return self._mapped(EDGES, np.uint32)  # type: ignore[no-any-return]

    @cached_property
    def weights(self) -> npt.NDArray[np.float16]:
        """Their similarities, float16 ``[m, k]``."""
        return self._mapped(WEIGHTS, np.float16)  # type: ignore[no-any-return]

    def _mapped(self, name: str, dtype: Any) -> Any:
        path, shape = self.path / name, (len(self), self.k)
        if path.stat().st_size != shape[0] * shape[1] * np.dtype(dtype).itemsize:
            raise DamagedError(path, f"its size is not that of {shape[0]} documents of {shape[1]} neighbors")
        return np.memmap(path, dtype, "r", shape=shape).view(np.ndarray)  # whose rows are faster to take

    @cached_property
    def docnos(self) -> list[str]:
        """The documents by number."""
        import npids

        return npids.Lookup(str(self.path / DOCNOS)).fwd[np.arange(len(self))].tolist()  # type: ignore[no-any-return]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each document."""
        return {docno: number for number, docno in enumerate(self.docnos)}

    def neighbors(self, docno: str) -> list[str]:
        """Return the nearest documents of one, nearest first; none of a document that is not in the graph."""
        number = self.numbers.get(docno)
        near = [] if number is None else self.edges[number].tolist()
        return [self.docnos[other] for other in near if other != number]

    def near(self, docnos: Sequence[str]) -> list[str]:
        """Return the neighbors of some documents of the graph, ``k`` of each, end to end."""
        numbers = [self.numbers[docno] for docno in docnos]
        return [self.docnos[number] for number in self.edges[numbers].ravel().tolist()] if numbers else []

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}


@dataclass(frozen=True, eq=False)
class Neighbors:
    """Work of a block of documents: the docnos of the nearest ones of each, and their similarities."""

    index: Any
    k: int
    candidates: int | None
    docnos: Sequence[str] = field(default=(), repr=False)
    """All documents, where all are candidates."""

    def __call__(self, block: Sequence[str]) -> list[tuple[list[str], ExactScores]]:
        backend: Backend = self.index.snapshot()
        numbers = backend.find(block)
        rows, offsets = backend.rows(numbers)
        if self.candidates is None:
            candidates = _by_rows(backend, rows, offsets, backend.find(self.docnos), self.k + 1)
        else:
            batch = QueryBatch(rows[offsets[1:] - 1], np.arange(len(block) + 1), qids=tuple(block))
            candidates = [hits.numbers for hits in backend.select(batch, self.candidates + 1, "doc", How())]
        nearest = []
        for number, (first, last), near in zip(numbers.tolist(), pairwise(offsets.tolist()), candidates, strict=True):
            others = np.sort(near[near != number])
            best = best_of(backend, others, symmetric(rows[first:last], *backend.rows(others)), self.k)
            nearest.append((backend.texts("docno", best.numbers), best.scores))
        return nearest


def symmetric(rows: Rows, others: Rows, offsets: Numbers) -> ExactScores:
    """Compute the symmetric MaxSim of one document with others, float64 ``[m]``, rounded to float32 precision."""
    if len(offsets) < 2:
        return np.empty(0)
    products = rows.astype(np.float64) @ others.astype(np.float64).T  # [n, r]
    there = np.maximum.reduceat(products, offsets[:-1], axis=1).mean(axis=0)
    back = np.add.reduceat(products.max(axis=0), offsets[:-1]) / np.diff(offsets)
    scores: ExactScores = ((there + back) / 2).astype(np.float32).astype(np.float64)
    return scores


def _by_rows(backend: Backend, rows: Rows, offsets: Numbers, numbers: Numbers, k: int) -> list[Numbers]:
    """Select the documents among which the nearest ``k`` of each of a block are, by float32 products of all rows."""
    lengths, scores, greatest = np.diff(offsets), [], 1.0
    longest = int(lengths.max())
    for start in range(0, len(numbers), _READ):
        others, ends = backend.rows(numbers[start : start + _READ])
        products = rows @ others.T  # [r of the block, r of the others]
        there = np.add.reduceat(np.maximum.reduceat(products, ends[:-1], axis=1), offsets[:-1], axis=0)
        back = np.add.reduceat(np.maximum.reduceat(products, offsets[:-1], axis=0), ends[:-1], axis=1)
        scores.append((there / lengths[:, None] + back / np.diff(ends)) / 2)
        greatest = max(greatest, float(np.einsum("ij,ij->i", others, others).max()))
        longest = max(longest, int(np.diff(ends).max()))
    found = np.concatenate(scores, axis=1)
    error = (rows.shape[1] + longest + 4) * 2.0**-23 * greatest  # of a product and of a sum, in any order
    if found.shape[1] <= k:
        return [numbers] * len(lengths)
    floors = np.partition(found, -k, axis=1)[:, -k] - 2 * error
    return [numbers[of >= floor] for of, floor in zip(found, floors, strict=True)]


def build_corpus_graph(
    index: Any,
    k: int = 16,
    path: str | Path | None = None,
    *,
    candidates: int | None = None,
    executor: Executor | None = None,
    verbose: bool = False,
) -> CorpusGraph:
    """Find the nearest ``k`` documents of each document by symmetric MaxSim, and store them as a graph.

    A graph that is there is returned if it was made from the same state of the index in the same way. An interrupted
    build is resumed by the same call.

    Args:
        index: the index.
        k: neighbors of each document.
        path: the folder of the graph; by default beside the index, ``arqmath.k16.graph`` for ``arqmath.mathamr``.
        candidates: compare each document only with as many whose VIRTUAL_DOCUMENT is nearest, for large indexes;
            ``None`` compares it with all.
        executor: ``Processes(n)`` or ``RayCluster(address)``, by default this process; the graph is the same.
        verbose: show a progress bar.

    Returns:
        The graph.

    Raises:
        OtherArtifactError: a graph of another state of the index, or made otherwise, is at the path; the error names
            the differences.
    """
    COUNT.check("k", k)
    COUNT.or_none().check("candidates", candidates)
    if path is None and not isinstance(index.path, Path):
        raise ConfigError("path", path, "the folder of the graph: an index in Qdrant has none")
    if path is None:
        path = index.path.with_name(f"{artifact_name(index.path)}.k{k}.graph")
    path = Path(path).absolute()
    snapshot = index.snapshot()
    made = {"k": k, "candidates": candidates, "index": snapshot.identity}
    with writer_lock(path):
        if path.exists():
            different = differences(CorpusGraph(path).meta.get("made", {}), made)
            if different:
                listed = (f"{name}: {known!s:.20}, not {wanted!s:.20}" for name, (known, wanted) in different.items())
                raise OtherArtifactError(path, f"a graph that was made otherwise ({'; '.join(listed)})")
            return CorpusGraph(path)
        folder = path.with_name(f".{path.name}.job")
        docnos = [entry.docno for entry in snapshot.entries()]
        if len(docnos) < 2:
            raise MathAMRIndexError(f"{index.path}: a graph needs at least two documents.")
        with writing(path):
            done = _begin(folder, made, docnos)
        place = {docno: number for number, docno in enumerate(docnos)}
        work = Neighbors(index, k, candidates, docnos if candidates is None else ())
        blocks = [docnos[start : start + BLOCK] for start in range(done, len(docnos), BLOCK)]
        with closing((executor or Processes(1)).map(work, blocks)) as found:
            shown = progress(found, "nearest documents", "blocks", verbose=verbose, total=len(blocks))
            with writing(path), open(folder / EDGES, "ab") as edges, open(folder / WEIGHTS, "ab") as weights:
                for block, nearest in zip(blocks, shown, strict=True):
                    for docno, (names, scores) in zip(block, nearest, strict=True):
                        missing = k - len(names)
                        numbers = [place[name] for name in names] + [place[docno]] * missing
                        edges.write(np.array(numbers, dtype=np.uint32).tobytes())
                        weights.write(np.concatenate([scores, np.zeros(missing)]).astype(np.float16).tobytes())
                    edges.flush()
                    weights.flush()
        with writing(path):
            known = {"type": TYPE, "format": FORMAT, "package_hint": "pyterrier-adaptive"}
            replace_file(folder / META, json.dumps({**known, "doc_count": len(docnos), "k": k, "made": made}).encode())
            (folder / _JOB).unlink()
            sync_tree(folder)
            folder.rename(path)
    return CorpusGraph(path)


def _begin(folder: Path, made: dict[str, Any], docnos: Sequence[str]) -> int:
    """Begin a job, or continue the same one; return how many documents are done."""
    if (folder / _JOB).exists() and json.loads((folder / _JOB).read_bytes()) == made:
        row = {EDGES: 4 * made["k"], WEIGHTS: 2 * made["k"]}
        done: int = min((folder / name).stat().st_size // size for name, size in row.items()) // BLOCK * BLOCK
        for name, size in row.items():
            with open(folder / name, "rb+") as file:
                file.truncate(done * size)
        return done
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_id_file(folder / DOCNOS, docnos)
    for name in (EDGES, WEIGHTS):
        (folder / name).touch()
    replace_file(folder / _JOB, json.dumps(made).encode())
    return 0
