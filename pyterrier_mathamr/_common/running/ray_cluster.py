"""Work spread over a Ray cluster, its results in the order of one process.

::

    items ──a few ahead──▶ tasks of the cluster ──▶ results in order
                             │ a node dies: Ray does its tasks again elsewhere
                             │ the caller stops: tasks that do not end soon are canceled

Finished results are held in the shared memory of the nodes until their turn, at most :data:`_AHEAD` of them. The
package must be installed on all nodes, in the same release.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pyterrier_mathamr._common.errors import MathAMRError, first_line, require
from pyterrier_mathamr._common.parameters import COUNT, Rule
from pyterrier_mathamr._version import __version__

from .processes import Executor, limit_cores
from .settings import variables_of_worker

Item = TypeVar("Item")
Result = TypeVar("Result")

_RETRIES = 8  # of an item whose worker or node died
_QUEUED = 2  # items for each worker that are handed out, so that it has the next one when it has finished one
_AHEAD = 4  # items for each worker that are handed out or finished and waiting for an earlier one
_COUNTED = 5.0  # seconds after which the workers are counted again, since nodes come and go
_STORE_BYTES = 512 << 20  # shared memory of a node that is started here; Ray's default is 30 % of the machine's
_GRACE = 5.0  # seconds for tasks to end once their results are no longer wanted
_PATIENCE = 10.0  # seconds for a head to answer
_NOTHING = object()

_ADDRESS = Rule(
    "'auto', 'local' or the HOST:PORT of a cluster's head",
    lambda value: isinstance(value, str) and bool(re.fullmatch(r"auto|local|[^:/\s]+:\d+", value)),
)


class ClusterError(MathAMRError):
    """A Ray cluster cannot be reached, or cannot do the work."""

    address: str
    reason: str
    template = "Ray cluster {address}: {reason}."


@dataclass(frozen=True)
class RayCluster(Executor):
    """An executor: work spread over a Ray cluster (extra ``ray``).

    The process that uses it runs on a node of the cluster, and everything that it reads by path (stores, models,
    official trees) is at the same path on all nodes. If a node dies, another one repeats its work; while no node can
    do it, the work waits for one.

    Attributes:
        address: of the cluster: ``auto`` for the cluster of this machine, ``HOST:PORT`` of its head, or
            ``local`` to start Ray on this machine.
        workers: the most items worked on at a time; by default as many as the cluster has room for.
        resources: the resources for each item, in Ray's names, such as ``{"CPU": 1, "GPU": 0.5}``; by default one core.
        done: how many items each node has done.

    On a cluster::

        cluster = mathamr.RayCluster("10.0.0.1:6379")
        mathamr.graph.build_store(dataset.get_corpus_iter(), mathamr.GraphBuilder(), store, executor=cluster)

    Raises:
        ConfigError: ``address`` or ``workers`` is invalid.
    """

    address: str = "auto"
    workers: int | None = None
    resources: Mapping[str, float] | None = None
    done: Counter[str] = field(default_factory=Counter, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _ADDRESS.check("address", self.address)
        COUNT.or_none().check("workers", self.workers)

    def __hash__(self) -> int:
        return hash((self.address, self.workers))

    def connect(self) -> Any:
        """Connect this process to the cluster, unless it is connected already, and return the module ``ray``."""
        ray = require("ray", "ray")
        if ray.is_initialized():
            joined = ray.get_runtime_context().gcs_address
            if self.address not in ("auto", "local", joined):
                raise ClusterError(self.address, f"this process is connected to {joined}; one process uses one cluster")
            return ray
        local = {"num_cpus": os.cpu_count(), "object_store_memory": _STORE_BYTES, "include_dashboard": False}
        options: dict[str, Any] = local if self.address == "local" else {}
        host, _, port = self.address.partition(":")
        try:
            if port:  # knock first: Ray itself tries for more than a minute where there is no head
                socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
            with _signals_kept():
                ray.init(address=self.address, log_to_driver=False, logging_level="ERROR", **options)
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            advice = "`ray start --head` starts a cluster, `ray start --address=HOST:PORT` on another machine joins it"
            raise ClusterError(self.address, f"it cannot be reached ({first_line(error)}); {advice}") from error
        return ray

    @property
    def slots(self) -> int:
        room = self._room(self.connect())
        return max(1, min(room, self.workers or room))

    def _room(self, ray: Any) -> int:
        """Return how many items the nodes that are alive have room for."""
        needs = [(name, amount) for name, amount in self._needs().items() if amount > 0]
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        return sum(min((int(node.get(name, 0) / amount) for name, amount in needs), default=0) for node in nodes)

    def sees(self, file: Path) -> bool:
        """Whether all nodes read the same bytes at the path of a small ``file`` as this process: shared storage."""
        ray = self.connect()
        pinned = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
        ask = ray.remote(num_cpus=0)(content_of)
        asked = [ask.options(scheduling_strategy=pinned(node, soft=False)).remote(file) for node in nodes]
        content = content_of(file)
        return content is not None and all(self._result(ray, one) == content for one in asked)

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        """Map ``work`` over ``items`` on the cluster; the results come in their order.

        Raises:
            MissingExtraError: Ray is not installed.
            ClusterError: the cluster cannot be reached, has no node with the resources, or repeatedly lost an item, or
                a node has another release of this package.
        """
        ray = self.connect()
        if not self._room(ray):
            needed = ", ".join(f"{name}: {amount:g}" for name, amount in self._needs().items())
            raise ClusterError(self.address, f"none of its nodes has {needed}")
        box, key = [ray.put(work)], uuid.uuid4().hex
        needs = self._needs()
        task = ray.remote(
            num_cpus=needs.pop("CPU"),
            num_gpus=needs.pop("GPU", 0),
            memory=needs.pop("memory", None),
            resources=needs,
            max_retries=_RETRIES,
            max_calls=0,  # a worker with a GPU is kept, too
            runtime_env={"env_vars": variables_of_worker(one_thread=True)},
        )(do)
        submitted = (task.remote(key, box, __version__, item) for item in items)
        for node, result in self._in_order(ray, submitted):
            self.done[node] += 1
            yield result

    def _in_order(self, ray: Any, submitted: Iterator[Any]) -> Iterator[Any]:
        """Yield the results of tasks, in order; a task begins when it is read from ``submitted``.

        Where the caller stops, tasks that were handed out have a few seconds to end by themselves: if one that is
        canceled finishes at that moment, Ray ends the caller's process ("Tried to complete task that was not pending",
        Ray 2.60).
        """
        waiting: deque[Any] = deque()
        running: list[Any] = []
        room, counted = self.workers or 0, -_COUNTED
        try:
            while True:
                if not self.workers and time.monotonic() - counted >= _COUNTED:
                    room, counted = max(1, _QUEUED * self._room(ray)), time.monotonic()
                while len(running) < room and len(waiting) < _AHEAD * room:
                    if (task := next(submitted, _NOTHING)) is _NOTHING:
                        break
                    waiting.append(task)
                    running.append(task)
                if not waiting:
                    return
                if waiting[0] in running:
                    _, running = ray.wait(running, fetch_local=False, timeout=_COUNTED)
                else:
                    yield self._result(ray, waiting.popleft())
        finally:
            if waiting:
                _, left = ray.wait(list(waiting), num_returns=len(waiting), fetch_local=False, timeout=_GRACE)
                for task in left:
                    ray.cancel(task, force=True)

    def _result(self, ray: Any, task: Any) -> Any:
        try:
            return ray.get(task)
        except ray.exceptions.RayTaskError as error:
            raise (error.cause or error) from error
        except ray.exceptions.RayError as error:
            reason = f"an item was lost {_RETRIES + 1} times, perhaps for lack of memory ({first_line(error)})"
            raise ClusterError(self.address, reason) from error

    def doing(self) -> str:
        return ", ".join(f"{node} {count}" for node, count in sorted(self.done.items()))

    def _needs(self) -> dict[str, float]:
        """Return the resources of an item, in Ray's names."""
        return {"CPU": 1.0, **(self.resources or {})}


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Keep the handler of SIGTERM, which Ray replaces by one that ends the process without its notes."""
    main_thread = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM) if main_thread else None
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


_kept: tuple[tuple[str, str | None], Callable[[Any], Any]] | None = None


def other_release(node: str, wanted: str) -> ClusterError:
    """Return the error for a node that has another release of this package than the command."""
    reason = f"it has pyterrier-mathamr {__version__}, and the command runs with {wanted}"
    return ClusterError(f"node {node}", f"{reason}; install the same release on all nodes")


def do(key: str, work: list[Any], release: str, item: Any) -> tuple[str, Any]:
    """Work on an item; return the name of this node and the result."""
    global _kept
    import ray

    node, wanted = node_name(), (key, os.environ.get("CUDA_VISIBLE_DEVICES"))
    if _kept is None or _kept[0] != wanted:  # for another GPU it is fetched again
        if release != __version__:
            raise other_release(node, release)
        limit_cores(int(os.environ.get("OMP_NUM_THREADS") or 1))  # the cores assigned to this worker
        _kept = None
        _kept = (wanted, ray.get(work[0]))
    return node, _kept[1](item)


def node_name() -> str:
    """Return the name of this node: that of the machine, and the beginning of Ray's own."""
    import ray

    return f"{socket.gethostname()}/{ray.get_runtime_context().get_node_id()[:6]}"


def content_of(file: Path) -> bytes | None:
    """Read a small file on this node; ``None`` where there is none."""
    try:
        return file.read_bytes()
    except OSError:
        return None
