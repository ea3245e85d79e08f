"""Exact search over parts: several indexes that are searched as one, each where it is, and the folder that holds them.

::

    ShardedIndex ── snapshot ──ask──▶ places ──▶ processes, actors    one MathAMRIndex each, opened where it is
         │              └── merges the best of each part: score descending, docno ascending
         └── manifest of the parts: built by `filling`, joined, read

Each part finds its best ``k``; the best ``k`` of these are the best of all. The score of a document is computed from
its own rows only, so it is the score that one index of all documents gives. Approximate search finds other documents in
parts than in one index, and is refused.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import Counted, counted, size_of
from pyterrier_mathamr._common.frames import best_places
from pyterrier_mathamr._common.parameters import COUNT, artifact_name, between
from pyterrier_mathamr._common.running.processes import Processes
from pyterrier_mathamr._common.running.ray_cluster import RayCluster
from pyterrier_mathamr.store import (
    META,
    PACKAGE,
    DamagedError,
    DuplicateIdError,
    Kind,
    NotBuiltError,
    OtherArtifactError,
    StoreError,
    UnfinishedJobError,
    differences,
    ranges,
    read_details,
    read_signed,
    replace_file,
    signed,
    write_details,
    writer_lock,
    writing,
)

from .backend import Backend, ExactScores, Field, Hits, How, Numbers, QueryBatch, Rows, evenly
from .errors import EmbeddingError, MathAMRIndexError, check_model, parts_error
from .indexes import DocumentVectorIndex, MathAMRIndex, example_documents, example_folder
from .parts import DType, Entry, IndexMeta, described_rows, read_entries
from .places import CHANGED, ActorPlace, ClusterNodes, PartReaders, PartState, Place, Places, ProcessPlace

PARTS = Kind("sharded_index", 1, rebuild="mathamr index GRAPHS MODEL -o {path} --parts N")
PART = re.compile(r"part-[0-9]{6,12}")


@dataclass(frozen=True, slots=True)
class PartRecord:
    """One part as the manifest knows it."""

    name: str  # of its folder
    identity: str  # the checksum of its manifest
    documents: int


def read_parts(path: Path) -> list[PartRecord]:
    details = read_details(path, PARTS)
    try:
        parts = [PartRecord(**entry) for entry in details["parts"]]
        if not parts or not all(
            PART.fullmatch(part.name) and isinstance(part.identity, str) and part.documents >= 0 for part in parts
        ):
            raise ValueError("no part, or one of an impossible name, identity or size")
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError(path / META, f"a key is missing or wrong ({error!r:.200})") from error
    return parts


def joint_meta(paths: Sequence[Path], metas: Sequence[IndexMeta]) -> IndexMeta:
    """Combine the descriptions of some parts; an empty part has none."""
    filled = [(path, meta) for path, meta in zip(paths, metas, strict=True) if meta.dimensions]
    for path, meta in filled[1:]:
        if meta.dimensions != filled[0][1].dimensions:
            other = f"but {filled[0][0]} has {filled[0][1].dimensions}"
            raise EmbeddingError(str(path), f"its rows have {meta.dimensions} dimensions, {other}")
    models = [(path, meta.model) for path, meta in zip(paths, metas, strict=True) if meta.model]
    for path, model in models[1:]:
        check_model(path, model, models[0][1])
    width, dtype = (filled[0][1].dimensions, filled[0][1].dtype) if filled else (0, "float32")
    keep = dict.fromkeys(name for meta in metas for name in meta.keep)
    return IndexMeta(width, models[0][1] if models else None, dtype, tuple(keep))


def join_parts(path: Path, names: Sequence[str] | None = None) -> None:
    """Write the manifest of the parts in a folder."""
    if names is None:
        folders = (entry for entry in path.glob("part-*") if PART.fullmatch(entry.name) and (entry / META).exists())
        names = sorted(entry.name for entry in folders)
    parts = [MathAMRIndex(path / name).snapshot() for name in names]
    if not parts:
        raise NotBuiltError(path, "there is no part-000000 here, nor any other part of an index")
    joint_meta([part.path for part in parts], [part.meta for part in parts])
    hashes = np.sort(np.concatenate([_hash(part) for part in parts]))  # eight bytes of memory for each document
    if len(equal := hashes[1:][hashes[1:] == hashes[:-1]]):
        times = Counter(docno for part in parts for docno in part if _hash([docno])[0] in equal)
        if twice := sorted(docno for docno, count in times.items() if count > 1):
            raise DuplicateIdError(path, twice)
    with writing(path):
        records = [asdict(PartRecord(part.path.name, part.identity, len(part))) for part in parts]
        write_details(path, PARTS, sum(map(len, parts)), {"parts": records})


def _hash(docnos: Iterable[str]) -> npt.NDArray[np.uint64]:
    names = np.array([docno.encode("utf-8", "surrogatepass") for docno in docnos], dtype=object)
    return pd.util.hash_array(names, categorize=False)


NOTE = "unfinished.json"
_OURS = re.compile(rf"({PART.pattern})|\.{PART.pattern}\.job")


@contextmanager
def filling(
    path: Path, parts: int, fingerprint: Mapping[str, Any], *, fresh: bool = False
) -> Iterator[list[MathAMRIndex]]:
    """Build the parts of an index, and make them the index in one step at the end of the block."""
    path, fingerprint = path.absolute(), {**fingerprint, "parts": parts}
    with writer_lock(path):
        with writing(path):
            names = _parts_to_fill(path, fingerprint, fresh)
        yield [MathAMRIndex(path / name) for name in names]
        join_parts(path, names)
        with writing(path):
            (path / NOTE).unlink()
            _clean(path, names)


def _parts_to_fill(path: Path, fingerprint: Mapping[str, Any], fresh: bool) -> list[str]:
    """Return the names of the parts of a job: of one that was stopped, or of a new one, whose note is written."""
    old: list[str] = []  # the parts of the index that exists
    if (path / META).exists():
        old = [part.name for part in read_parts(path)]
    elif path.is_file():
        raise OtherArtifactError(path, "it is a file, not an index in parts")
    elif foreign := [file.name for file in path.glob("[!.]*") if file.name != NOTE and not PART.fullmatch(file.name)]:
        raise OtherArtifactError(path, f"it has no {META}, and {foreign[0]!r:.80}, which is not a part of an index")
    if (path / NOTE).exists() and not fresh:
        note = read_signed(path / NOTE)
        stopped: list[str] = note["names"]
        if stopped != old:  # otherwise it was killed after the manifest had named them
            if different := differences(note["fingerprint"], dict(fingerprint)):
                raise UnfinishedJobError(path, different)
            return stopped
    path.mkdir(parents=True, exist_ok=True)
    (path / NOTE).unlink(missing_ok=True)
    _clean(path, old)
    first = 1 + max((int(name.removeprefix("part-")) for name in old), default=-1)
    names = [f"part-{first + number:06d}" for number in range(fingerprint["parts"])]
    replace_file(path / NOTE, signed({"fingerprint": dict(fingerprint), "names": names}))
    return names


def _clean(path: Path, names: Sequence[str]) -> None:
    """Remove all parts but some, and unfinished work on any."""
    for entry in path.iterdir():
        if (match := _OURS.fullmatch(entry.name)) and match[1] not in names:
            shutil.rmtree(entry)


class ShardedSnapshot(Backend):
    """A :class:`~..backend.Backend` whose parts are elsewhere; documents are numbered from 0 through all of them."""

    def __init__(self, path: Path, paths: Sequence[Path], places: Places) -> None:
        self.path, self._places = path, places
        states = places.ask("state", dict.fromkeys(range(len(paths)), ()))
        self.states: list[PartState] = [states[number] for number in range(len(paths))]
        self.bases: Numbers = np.cumsum([0, *(state.numbers for state in self.states)], dtype=np.int64)
        self.meta = joint_meta(paths, [state.meta for state in self.states])
        self._docnos: dict[int, str] = {}  # of the documents that were found

    @property
    def identity(self) -> str:
        return " ".join(state.identity for state in self.states)

    def __len__(self) -> int:
        return sum(state.documents for state in self.states)

    def select(self, queries: QueryBatch, k: int, field: Field, how: How) -> list[Hits]:
        """Find the best ``k`` documents of each query: the best of each part, merged, ties by docno."""
        asked = [queries] * len(self.states)
        if queries.among:
            among = zip(*map(self._by_part, queries.among), strict=True)
            asked = [replace(queries, among=tuple(local for _, local in of_part)) for of_part in among]
        answers = self._ask("select", {part: (of_part, k, field, how) for part, of_part in enumerate(asked)})
        merged = []
        for query in range(len(queries)):
            of_parts = [(self.bases[part], *answer[query]) for part, answer in answers.items()]
            numbers = np.concatenate([hits.numbers + base for base, hits, _ in of_parts])
            scores = np.concatenate([hits.scores for _, hits, _ in of_parts])
            docnos = np.array([docno for _, _, texts in of_parts for docno in texts], dtype=object)
            best = best_places(scores, k, docnos.__getitem__)
            names = dict(zip(numbers[best].tolist(), docnos[best].tolist(), strict=True))
            if len(set(names.values())) < len(names):
                ordered = sorted(names.values())
                raise DuplicateIdError(self.path, [one for one, other in pairwise(ordered) if one == other])
            self._docnos |= names
            merged.append(Hits(numbers[best], scores[best]))
        return merged

    def score(self, queries: QueryBatch, numbers: Sequence[Numbers], field: Field) -> list[ExactScores]:
        scores = [np.empty(len(wanted)) for wanted in numbers]
        split = dict(enumerate(zip(*map(self._by_part, numbers), strict=True)))  # of each part, a pair for each query
        wanted = {part: [local for _, local in of_queries] for part, of_queries in split.items()}
        arguments = {part: (queries, local, field) for part, local in wanted.items() if any(map(len, local))}
        for part, answers in self._ask("score", arguments).items():
            for of_query, (places, _), answer in zip(scores, split[part], answers, strict=True):
                of_query[places] = answer
        return scores

    def sample(self, count: int) -> Numbers:
        return evenly(np.concatenate(self._orders()), count)

    def look_up(self, docnos: Sequence[str]) -> Numbers:
        numbers = np.full(len(docnos), -1, dtype=np.int64)
        for part, local in self._ask("look_up", dict.fromkeys(range(len(self.states)), (list(docnos),))).items():
            inside = local >= 0
            if (twice := np.flatnonzero(inside & (numbers >= 0))).size:
                raise DuplicateIdError(self.path, [docnos[i] for i in twice.tolist()])
            numbers[inside] = local[inside] + self.bases[part]
        return numbers

    def texts(self, name: str, numbers: Numbers) -> list[str]:
        wanted = numbers.tolist()
        if name == "docno" and all(number in self._docnos for number in wanted):
            return [self._docnos[number] for number in wanted]
        texts = np.empty(len(numbers), dtype=object)
        split = self._by_part(numbers)
        asked = {part: (name, local) for part, (_, local) in enumerate(split) if len(local)}
        for part, answer in self._ask("texts", asked).items():
            texts[split[part][0]] = answer
        return list(texts)

    def rows(self, numbers: Numbers, field: Field = "all") -> tuple[Rows, Numbers]:
        split = self._by_part(numbers)
        answers = self._ask("rows", {part: (local, field) for part, (_, local) in enumerate(split) if len(local)})
        lengths = np.zeros(len(numbers), dtype=np.int64)
        for part, (_, offsets) in answers.items():
            lengths[split[part][0]] = np.diff(offsets)
        ends = np.cumsum([0, *lengths.tolist()], dtype=np.int64)
        gathered = np.empty((int(ends[-1]), self.meta.dimensions), dtype=np.float32)
        for part, (rows, _) in answers.items():
            places = split[part][0]
            gathered[ranges(ends[places], lengths[places])] = rows
        return gathered, ends

    def entries(self) -> Iterator[Entry]:
        for numbers in self._orders():
            yield from read_entries(self, "documents", numbers)

    def _orders(self) -> list[Numbers]:
        orders = self._ask("in_order", dict.fromkeys(range(len(self.states)), ()))
        return [orders[part] + base for part, base in enumerate(self.bases[:-1].tolist())]

    def _by_part(self, numbers: Numbers) -> list[tuple[Numbers, Numbers]]:
        """Return for each part the places in ``numbers`` of its documents, and their numbers in it, ascending."""
        order = np.argsort(numbers, kind="stable")
        cuts = np.searchsorted(numbers[order], self.bases).tolist()
        places = [order[first:last] for first, last in pairwise(cuts)]
        return [(of_part, numbers[of_part] - base) for of_part, base in zip(places, self.bases[:-1], strict=True)]

    def _ask(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Ask some parts, each of which must be in the state that was opened."""
        known = {part: (self.states[part].identity, *given) for part, given in arguments.items()}
        return self._places.ask(method, known)


class ShardedIndex(Counted, DocumentVectorIndex, pt.Artifact):  # type: ignore[misc]
    """Several indexes of documents searched as one, each part in a separate process, or on a cluster.

    Its rankings and scores equal the ones of one :class:`~pyterrier_mathamr.MathAMRIndex` of all documents::

        index = ShardedIndex("arqmath.mathamr")                     # mathamr index … -o arqmath.mathamr --parts 16
        index = ShardedIndex(["2021.mathamr", "2022.mathamr"])      # or any indexes of different documents
        pipeline = graphs >> model.query_encoder() >> index.colbert(num_results=100)

        index = ShardedIndex("arqmath.mathamr", RayCluster("10.0.0.1:6379"))

    The processes are started by the first search and stay until :meth:`close` or the end of the object; a script
    therefore keeps its work under ``if __name__ == "__main__":``. One that dies is started again, and its share of the
    query repeated. A part that is missing, was changed, keeps failing or does not answer in time is a named error:
    there is no ranking without it.

    Args:
        paths: the folder of an index in parts, or the parts, each document in one of them. Constructing the object
            reads nothing.
        executor: ``Processes(n)`` for at most ``n`` processes that share the parts; ``Processes(1)`` is this
            one, without a time limit; ``RayCluster(address)`` for an actor for each part, on a node that has it at its
            path. The actors reserve ``resources``, by default nothing.
        threads: of each process or actor.
        time_limit: seconds for a request: a batch of queries, including starts of processes.
    """

    ARTIFACT_TYPE, ARTIFACT_FORMAT, ARTIFACT_PACKAGE_HINT = PARTS.type, PARTS.format, PACKAGE
    path: Path

    APPROXIMATE = False

    def __init__(
        self,
        paths: str | Path | Sequence[str | Path],
        executor: Processes | RayCluster | None = None,
        *,
        threads: int = 1,
        time_limit: float = 300.0,
    ) -> None:
        if not isinstance(executor, Processes | RayCluster | None):
            raise ConfigError("executor", executor, "Processes(n), RayCluster(address) or None")
        COUNT.check("threads", threads)
        between(0.001).check("time_limit", time_limit)
        self.paths = Path(paths) if isinstance(paths, str | Path) else tuple(map(Path, paths))
        self.executor, self.threads, self.time_limit = executor, threads, time_limit
        if isinstance(self.paths, Path):
            super().__init__(self.paths)
        else:
            absolute = {path.absolute() for path in self.paths}
            if not absolute or len(absolute) < len(self.paths):
                raise ConfigError("paths", list(map(str, self.paths)), "one part or more, each of them once")
            super().__init__(Path(os.path.commonpath(absolute)))
        self._places: Places | None = None
        self._searched: list[Path] = []
        self._opening = threading.Lock()

    @property
    def nickname(self) -> str:
        """What the names of transformers call it."""
        if isinstance(self.paths, Path):
            return artifact_name(self.paths)
        others = f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else ""
        return artifact_name(self.paths[0]) + others

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("paths", "executor", "threads", "time_limit")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __repr__(self) -> str:
        paths = str(self.paths) if isinstance(self.paths, Path) else list(map(str, self.paths))
        executor = "" if self.executor is None else f", {self.executor!r}"
        return f"{type(self).__name__}({paths!r}{executor})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, ShardedIndex) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Path, ...]:
        return tuple(path.absolute() for path in ([self.paths] if isinstance(self.paths, Path) else self.paths))

    @classmethod
    def example(cls) -> Self:
        """Return a small index of random vectors in a temporary folder that is removed when Python ends."""
        folder = example_folder() / "example.mathamr"
        for number, document in enumerate(example_documents()):
            MathAMRIndex(folder / f"part-{number:06d}").index([document])
        return cls.join(folder)

    @classmethod
    def join(cls, path: str | Path) -> Self:
        """Write the manifest of finished parts, ``part-000000`` and so on, in a folder.

        Args:
            path: the folder of the parts.

        Raises:
            NotBuiltError: there is no part. DuplicateIdError: a document is in two parts.
            EmbeddingError: the rows of two have different widths. ModelMismatchError: their models differ.
        """
        join_parts(Path(path))
        return cls(path)

    def parts(self) -> list[MathAMRIndex]:
        """Return the parts, in order."""
        return [MathAMRIndex(path) for path in self._part_paths()[0]]

    def merge(self, path: str | Path, *, dtype: DType | None = None) -> MathAMRIndex:
        """Build one index of all parts, which must be on this machine; see :meth:`MathAMRIndex.merge`.

        Args:
            path: the folder of the new index, which must not exist.
            dtype: how rows are stored; by default as in the parts, which must then agree.
        """
        return MathAMRIndex.merge(path, *self.parts(), dtype=dtype)

    def snapshot(self) -> ShardedSnapshot:
        """Return the current state of all parts.

        Raises:
            StoreError: a part is missing, damaged or something else.
            MathAMRIndexError: a part was changed since the manifest was written, or does not answer.
        """
        paths, identities = self._part_paths()
        with self._opening:
            if self._places is None or self._searched != paths:
                self.close()
                self._searched, self._places = paths, Places(self._spread(paths), self.time_limit)
                weakref.finalize(self, self._places.end)
            places = self._places
        snapshot = ShardedSnapshot(self.path, paths, places)
        known = zip(identities, snapshot.states, paths, strict=True)
        if changed := [path for identity, state, path in known if identity not in (None, state.identity)]:
            raise parts_error(changed, CHANGED)
        return snapshot

    def close(self) -> None:
        """End the processes; the next search starts others."""
        if self._places is not None:
            self._places.close()

    def built(self) -> bool:
        """Whether there is a finished index in parts at the path, or each of the given parts is finished."""
        if isinstance(self.paths, Path):
            return (self.path / META).is_file()
        return all(MathAMRIndex(path).built() for path in self.paths)

    def counts(self) -> list[str]:
        """List the documents and parts, width and dtype of the vectors, and the bytes; ``print`` shows them."""
        states = self.snapshot().states
        documents = counted(sum(state.documents for state in states), "document")
        metas = [state.meta for state in states if state.meta.dimensions]
        rows = sorted({described_rows(meta.dimensions, meta.dtype) for meta in metas})
        size = size_of(sum(state.size for state in states))
        return [f"{documents} in {counted(len(states), 'part')}", *rows, size]

    def faults(self, *, verbose: bool = False) -> Iterator[StoreError]:
        """Read all parts, which must be on this machine, compare every checksum, and yield the faults.

        ``verbose`` shows a progress bar over the bytes of each part.
        """
        try:
            paths, identities = self._part_paths()
        except StoreError as error:
            yield error
            return
        for part, identity in zip(map(MathAMRIndex, paths), identities, strict=True):
            if identity is None:
                yield from part.faults(verbose=verbose)
            else:
                yield from part.member_faults(identity, self.path, verbose=verbose)

    def verify(self) -> None:
        """Read all parts, which must be on this machine, compare every checksum, and raise the first fault."""
        for fault in self.faults():
            raise fault

    def indexer(self) -> NoReturn:
        """Raise ``MathAMRIndexError``: each part is an index that is built separately."""
        raise MathAMRIndexError(
            f"{self.path}: documents are indexed into its parts: build each with MathAMRIndex(path).index(...), then "
            "ShardedIndex.join(folder); or by `mathamr index --parts N`."
        )

    def delete(self, ids: Iterable[str]) -> NoReturn:
        """Raise ``MathAMRIndexError``: a document is removed from its part."""
        raise MathAMRIndexError(
            f"{self.path}: documents are removed from their parts: MathAMRIndex(part).delete(...) for each of parts() "
            "that has some, then ShardedIndex.join(folder)."
        )

    def _part_paths(self) -> tuple[list[Path], list[str | None]]:
        """Return the paths of the parts, and the checksums of their manifests, where those are known."""
        if not isinstance(self.paths, Path):
            return list(self.paths), [None] * len(self.paths)
        parts = read_parts(self.path)
        return [self.path / part.name for part in parts], [part.identity for part in parts]

    def _spread(self, paths: Sequence[Path]) -> list[Place]:
        """Return where the parts are searched."""
        numbered = {number: path.absolute() for number, path in enumerate(paths)}
        if isinstance(self.executor, RayCluster):
            nodes = ClusterNodes(self.executor)
            return [ActorPlace({number: path}, self.threads, nodes) for number, path in numbered.items()]
        places = len(paths) if self.executor is None else min(self.executor.slots, len(paths))
        if places == 1 and self.executor is not None:
            return [PartReaders(numbered)]
        shares = [{number: numbered[number] for number in range(place, len(paths), places)} for place in range(places)]
        return [ProcessPlace(share, self.threads) for share in shares]
