"""A place that is an actor of a Ray cluster, on a node where the part lies.

::

    nodes that are alive ──there?──▶ those with the part ──▶ the one with the fewest parts of this index: an actor
                                                                │ it dies, or its node: the same again
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.running.processes import limit_cores
from pyterrier_mathamr._common.running.ray_cluster import OtherReleaseError, RayCluster, node_name
from pyterrier_mathamr._common.running.worker import ONE_THREAD
from pyterrier_mathamr._version import __version__
from pyterrier_mathamr.store import META, NotBuiltError

from .places import PlaceDiedError
from .reader import Readers, Request

_ASKED = 20.0
"""Seconds that nodes have to say what lies there, after one has said that the part does: one that died says nothing."""

_AGAIN = 0.5


class Nodes:
    """The nodes of a cluster, and how many parts of one index are searched on each."""

    def __init__(self, cluster: RayCluster) -> None:
        self.cluster, self.ray = cluster, cluster.connect()
        self._parts: Counter[str] = Counter()
        self._choosing = threading.Lock()

    def choose(self, path: Path) -> str:
        """Choose a node where a part lies, and count it there."""
        there = self._where(path)
        if not there:
            alive = sum(node["Alive"] for node in self.ray.nodes())
            raise NotBuiltError(path, f"none of the {alive} nodes of {self.cluster.address} has a finished index there")
        with self._choosing:
            node = min(there, key=lambda node: (self._parts[node], node))
            self._parts[node] += 1
        return node

    def leave(self, node: str) -> None:
        """Count a part less on a node."""
        with self._choosing:
            self._parts[node] -= 1

    def _where(self, path: Path) -> list[str]:
        """Return the nodes that have a part."""
        ray = self.ray
        task = ray.remote(num_cpus=0, max_retries=0)(_there)
        asked = {}
        for node in ray.nodes():
            if node["Alive"]:
                asked[task.options(scheduling_strategy=on_node(node["NodeID"])).remote(str(path))] = node["NodeID"]
        there: list[str] = []
        waiting = list(asked)
        while waiting:
            ready, waiting = ray.wait(waiting, num_returns=1, timeout=_ASKED if there else None)
            if not ready:
                break
            try:
                if ray.get(ready[0]):
                    there.append(asked[ready[0]])
            except ray.exceptions.RayError:  # a node that ended meanwhile
                continue
        return there


class ActorPlace:
    """One part in an actor."""

    def __init__(self, paths: Mapping[int, Path], threads: int, nodes: Nodes) -> None:
        self.paths, self._threads, self._nodes = dict(paths), threads, nodes
        self._running: tuple[Any, str] | None = None

    @property
    def node(self) -> str | None:
        """The node where it runs, in Ray's name."""
        running = self._running
        return running[1] if running else None

    def call(self, request: Request) -> dict[int, Any] | Exception:
        """Send a request to the actor, and wait for its answer."""
        ray, running = self._nodes.ray, self._running or self._start()
        try:
            waiting = [running[0].answer.remote(__version__, request)]
            while not ray.wait(waiting, timeout=_AGAIN)[0]:
                if self._running is not running:
                    raise PlaceDiedError("it was stopped")
            answer: dict[int, Any] | Exception = ray.get(waiting[0])
        except ray.exceptions.RayError as error:
            raise PlaceDiedError(f"node {running[1][:6]}: {str(error).strip().partition(chr(10))[0]}") from error
        return answer

    def stop(self) -> None:
        """Kill the actor."""
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
            scheduling_strategy=on_node(node),
            runtime_env={"env_vars": {name: os.environ.get(name, "1") for name in ONE_THREAD}},
            max_restarts=0,
        )
        self._running = actor.remote(self.paths, self._threads), node
        return self._running


class Actor:
    """What runs on the node: it answers requests about its parts."""

    def __init__(self, paths: Mapping[int, Path], threads: int) -> None:
        limit_cores(threads)
        self._readers = Readers(paths)

    def answer(self, release: str, request: Request) -> dict[int, Any] | Exception:
        """Answer a request; another release might number or score otherwise."""
        if release != __version__:
            return OtherReleaseError(node_name(), __version__, release)
        return self._readers.answer(request)


def on_node(node: str) -> Any:
    """Return Ray's strategy for what runs on one node, and nowhere else."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node, soft=False)


def _there(path: str) -> bool:
    return (Path(path) / META).is_file()
