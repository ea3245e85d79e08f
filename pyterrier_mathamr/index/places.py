"""Asking all parts at once, each where it is searched: a place that dies is started again, one that hangs is ended.

::

    ask ──▶ a thread for each place ──▶ Place.call ──▶ PartReaders.call      here, in a process, or in an actor
                      ▲                     │ WorkerDiedError: started again, at most twice
                      │                     ▼
             time limit: every place that still works is stopped, and a named error raised

An actor of a Ray cluster runs on a node where its part lies, the one with the fewest parts of the index.
"""

from __future__ import annotations

import pickle
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr._common.running.processes import limit_cores
from pyterrier_mathamr._common.running.ray_cluster import RayCluster, node_name, other_release
from pyterrier_mathamr._common.running.settings import variables_of_worker
from pyterrier_mathamr._common.running.worker import Worker, WorkerDiedError
from pyterrier_mathamr._version import __version__
from pyterrier_mathamr.store import META, NotBuiltError

from .errors import parts_error
from .indexes import MathAMRIndex
from .parts import IndexMeta

Arguments = Mapping[int, tuple[Any, ...]]  # the arguments of a request to each part, by the part's number

Answers = dict[int, Any] | Exception
"""The answers of the parts of one place, by number, or the error of the first that has one."""

CHANGED = (
    "it was changed since the index in parts was opened or written. Search again; if that does not help, restore the "
    "part, or write the manifest again by ShardedIndex.join"
)
_SLOW = "Search again, with a larger time_limit or a smaller batch_size if the parts are only slow"
_DIED = (
    "It may have run out of memory: use more parts, or fewer at once. A script needs `if __name__ == '__main__':` "
    "around its work"
)

TRIES = 3  # how often a place is tried, restarted before each further time


@dataclass(frozen=True, slots=True)
class PartState:
    """The description of one part by itself."""

    identity: str  # the checksum of its manifest
    numbers: int  # of documents, deleted ones included
    documents: int  # without deleted ones
    meta: IndexMeta
    size: int  # bytes of its files


class Place(Protocol):
    """Where some parts are searched; started by the first request, and again by the next one after :meth:`stop`."""

    @property
    def paths(self) -> Mapping[int, Path]:
        """Its parts, by number."""

    def call(self, method: str, arguments: Arguments) -> Answers:
        """Answer a request, or raise ``WorkerDiedError``."""

    def stop(self) -> None:
        """End it, whatever it does."""


class PartReaders:
    """Some parts in this process, without a time limit; in a process or an actor, this is what runs there."""

    def __init__(self, paths: Mapping[int, Path]) -> None:
        self.paths = dict(paths)
        self._indexes = {number: MathAMRIndex(path) for number, path in paths.items()}

    def call(self, method: str, arguments: Arguments) -> Answers:
        """Answer for each part: describe it, or call a method of its snapshot if it is as the caller knows it.

        Errors of this package are the caller's unchanged, if they can be sent to another process.
        """
        answers: dict[int, Any] = {}
        for number, given in arguments.items():
            path = self.paths[number]
            try:
                snapshot = self._indexes[number].snapshot()
                if method == "state":
                    size = sum(part.meta.size for part in snapshot.parts)
                    state = snapshot.identity, int(snapshot.bases[-1]), len(snapshot), snapshot.meta, size
                    answers[number] = PartState(*state)
                    continue
                identity, *options = given
                if snapshot.identity != identity:
                    raise parts_error([snapshot.path], CHANGED)
                answers[number] = getattr(snapshot, method)(*options)
                if method == "select":
                    answers[number] = [(hits, snapshot.texts("docno", hits.numbers)) for hits in answers[number]]
            except MathAMRError as error:
                try:
                    pickle.loads(pickle.dumps(error))
                except Exception:
                    return parts_error([path], str(error))
                return error
            except Exception as error:
                return parts_error([path], f"{type(error).__name__}: {error!s:.500}")
        return answers

    def stop(self) -> None:
        """Nothing runs between requests."""


class Places:
    """All places of an index."""

    def __init__(self, places: Sequence[Place], seconds: float) -> None:
        self.places, self.seconds = list(places), seconds
        self._threads = ThreadPoolExecutor(max(1, len(self.places)), thread_name_prefix="parts")
        self._lock = threading.Lock()

    def ask(self, method: str, arguments: Arguments) -> dict[int, Any]:
        """Ask some parts at once; an error of one is raised."""
        with self._lock:
            over = threading.Event()
            asked: dict[Future[Answers], Place] = {}
            for place in self.places:
                if of_place := {number: arguments[number] for number in place.paths if number in arguments}:
                    asked[self._threads.submit(_ask_again, place, method, of_place, over)] = place
            try:
                _, late = wait(asked, self.seconds)
            except BaseException:
                _end(asked, over)
                raise
            if late:
                hanging = {future: asked[future] for future in late}
                _end(hanging, over)
                paths = [path for place in hanging.values() for path in place.paths.values()]
                raise parts_error(paths, f"no answer within {self.seconds:g} s. {_SLOW}")
            answers: dict[int, Any] = {}
            for future in asked:
                if isinstance(answer := future.result(), Exception):
                    raise answer
                answers |= answer
            return answers

    def close(self) -> None:
        """End all places; the next request starts them again."""
        for place in self.places:
            place.stop()

    def end(self) -> None:
        self.close()
        self._threads.shutdown(wait=False)


def _ask_again(place: Place, method: str, arguments: Arguments, over: threading.Event) -> Answers:
    """Ask one place, again where it died."""
    reason = ""
    for _ in range(TRIES):
        if over.is_set():
            break
        try:
            return place.call(method, arguments)
        except WorkerDiedError as died:
            reason = str(died)
            place.stop()
    what = f"what searches this ended {TRIES} times during one request ({reason}). {_DIED}"
    return parts_error(place.paths.values(), what)


def _end(asked: Mapping[Future[Any], Place], over: threading.Event) -> None:
    """End the places that still work, and wait for their threads: no late answer is taken for that of a later one."""
    over.set()
    waiting = set(asked)
    while waiting:  # a thread may start its place just now
        for future in waiting:
            asked[future].stop()
        _, waiting = wait(waiting, 0.1)


class ProcessPlace:
    """Some parts in a separate process."""

    def __init__(self, paths: Mapping[int, Path], threads: int) -> None:
        self.paths, self._threads = dict(paths), threads
        self._worker = Worker(_call_in_process, one_thread=True)

    @property
    def pid(self) -> int | None:
        return self._worker.pid

    def call(self, method: str, arguments: Arguments) -> Answers:
        return self._worker(tuple(self.paths.items()), self._threads, method, arguments)

    def stop(self) -> None:
        self._worker.stop()


def _call_in_process(paths: tuple[tuple[int, Path], ...], threads: int, method: str, arguments: Arguments) -> Answers:
    limit_cores(threads)
    return _readers(paths).call(method, arguments)


@lru_cache(maxsize=1)
def _readers(paths: tuple[tuple[int, Path], ...]) -> PartReaders:
    return PartReaders(dict(paths))


_ASKED = 20.0  # seconds for nodes to describe their files, after one has reported the part; a dead node is silent
_AGAIN = 0.5


class ClusterNodes:
    """The nodes of a cluster, and how many parts of one index are searched on each."""

    def __init__(self, cluster: RayCluster) -> None:
        self.cluster, self.ray = cluster, cluster.connect()
        self._parts: Counter[str] = Counter()
        self._choosing = threading.Lock()

    def choose(self, path: Path) -> str:
        """Choose a node where a part lies, the one with the fewest parts, and count it there."""
        ray = self.ray
        task = ray.remote(num_cpus=0, max_retries=0)(_is_index)
        nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
        asked = {task.options(scheduling_strategy=_on_node(node)).remote(str(path)): node for node in nodes}
        having: list[str] = []
        waiting = list(asked)
        while waiting:
            ready, waiting = ray.wait(waiting, num_returns=1, timeout=_ASKED if having else None)
            if not ready:
                break
            with suppress(ray.exceptions.RayError):  # a node that ended meanwhile
                if ray.get(ready[0]):
                    having.append(asked[ready[0]])
        if not having:
            reason = f"none of the {len(nodes)} nodes of {self.cluster.address} has a finished index there"
            raise NotBuiltError(path, reason)
        with self._choosing:
            node = min(having, key=lambda node: (self._parts[node], node))
            self._parts[node] += 1
        return node

    def leave(self, node: str) -> None:
        with self._choosing:
            self._parts[node] -= 1


def _is_index(path: str) -> bool:
    return (Path(path) / META).is_file()


def _on_node(node: str) -> Any:
    """Return Ray's strategy for what runs on one node, and nowhere else."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node, soft=False)


class ActorPlace:
    """Some parts in an actor."""

    def __init__(self, paths: Mapping[int, Path], threads: int, nodes: ClusterNodes) -> None:
        self.paths, self._threads, self._nodes = dict(paths), threads, nodes
        self._running: tuple[Any, str] | None = None

    @property
    def node(self) -> str | None:
        """The node where it runs, in Ray's name."""
        running = self._running
        return running[1] if running else None

    def call(self, method: str, arguments: Arguments) -> Answers:
        ray, running = self._nodes.ray, self._running or self._start()
        try:
            waiting = [running[0].call.remote(__version__, method, arguments)]
            while not ray.wait(waiting, timeout=_AGAIN)[0]:
                if self._running is not running:
                    raise WorkerDiedError("it was stopped")
            answer: Answers = ray.get(waiting[0])
        except ray.exceptions.RayError as error:
            raise WorkerDiedError(f"node {running[1][:6]}: {str(error).strip().partition(chr(10))[0]}") from error
        return answer

    def stop(self) -> None:
        running, self._running = self._running, None
        if running:
            self._nodes.leave(running[1])
            ray = self._nodes.ray
            if ray.is_initialized():  # otherwise it ended with the connection
                with suppress(ray.exceptions.RayError):
                    ray.kill(running[0])

    def _start(self) -> tuple[Any, str]:
        node = self._nodes.choose(next(iter(self.paths.values())))
        needs = {"CPU": 0.0, **(self._nodes.cluster.resources or {})}
        actor = self._nodes.ray.remote(Actor).options(
            num_cpus=needs.pop("CPU"),
            num_gpus=needs.pop("GPU", 0),
            memory=needs.pop("memory", None),
            resources=needs,
            scheduling_strategy=_on_node(node),
            runtime_env={"env_vars": variables_of_worker(one_thread=True)},
            max_restarts=0,
        )
        self._running = actor.remote(self.paths, self._threads), node
        return self._running


class Actor:
    """The actor on a node."""

    def __init__(self, paths: Mapping[int, Path], threads: int) -> None:
        limit_cores(threads)
        self._readers = PartReaders(paths)

    def call(self, release: str, method: str, arguments: Arguments) -> Answers:
        """Answer a request; another release might number or score otherwise."""
        if release != __version__:
            return other_release(node_name(), release)
        return self._readers.call(method, arguments)
