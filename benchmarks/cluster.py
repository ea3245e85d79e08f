"""Build graphs and an index of arqmath-mini on two local Ray nodes, and compare bytes and time with one process.

::

    python benchmarks/cluster.py ../shared/arqmath-mini bytes [--posts 600] [--kills 10]
    python benchmarks/cluster.py ../shared/arqmath-mini time  [--posts 4000] [--rounds 3]

``bytes``: with one process, two, two nodes, two nodes (one is killed at random instants), and a driver that is
killed and resumed. Each line has the beginning of a hash of all files, the pieces of work and the attempts at them, the
parts of the index, and the orphans: files that no manifest names. All hashes must be equal, without orphans;
otherwise the exit code is 1.

``time``: wall-clock seconds and CPU seconds of all processes, including Ray's, each next to one process; rounds
alternate, and medians are printed. ``--address`` connects to a running cluster (``ray start``) for ``bytes`` without
kills.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.running.processes import Executor

_TICK = os.sysconf("SC_CLK_TCK")
_KEPT = {"idle_worker_killing_time_threshold_ms": 3_600_000}  # the CPU time of a worker that Ray ends is lost to us
_NODE = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False}


def main() -> None:
    """Print a line for each run."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("collection", type=Path)
    options.add_argument("what", choices=["bytes", "time"])
    options.add_argument("--posts", type=int)
    options.add_argument("--kills", type=int, default=10)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--part-bytes", type=int, default=100_000, help="of rows in a part, for many planned parts")
    options.add_argument("--address", help="of a cluster that is running")
    options.add_argument("--build", help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    given.posts = given.posts or {"bytes": 600, "time": 4000}[given.what]
    if given.build:
        build(given)
        return
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as folder:  # short: sockets lie in it
        os.environ["RAY_TMPDIR"] = folder
        trials = Trials(given, Path(folder))
        sys.exit(compare_bytes(trials) if given.what == "bytes" else compare_time(trials))


@dataclass(frozen=True)
class Noted:
    """Work that leaves a byte in a file whenever it is begun."""

    work: Callable[[Any], Any]
    file: str

    def __call__(self, item: Any) -> Any:
        """Do the work."""
        descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, b".")
        os.close(descriptor)
        return self.work(item)


@dataclass
class Counting(Executor):
    """An executor that counts pieces of work and attempts at them."""

    executor: Any
    file: str
    pieces: int = 0

    @property
    def slots(self) -> int:
        """How many items are worked on at a time."""
        return int(self.executor.slots)

    def doing(self) -> str:
        """Which node has done how much."""
        return str(self.executor.doing())

    def sees(self, file: Path) -> bool:
        """Whether storage is shared."""
        return bool(self.executor.sees(file))

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Generator[Any, None, None]:
        """Map and count."""
        for result in self.executor.map(Noted(work, self.file), items):
            self.pieces += 1
            yield result


def build(given: argparse.Namespace) -> None:
    """Build graphs and an index in this process with one executor; the driver of a trial."""
    warnings.simplefilter("ignore")
    from pyterrier_mathamr import GraphBuilder, GraphStore, MathAMR, MathAMRIndex, Processes, RayCluster
    from pyterrier_mathamr.arqmath import read_documents
    from pyterrier_mathamr.graph import build_store
    from pyterrier_mathamr.index import index_documents, indexing

    indexing.PART_BYTES = given.part_bytes
    name, _, value = given.build.partition("=")
    executor: Any = Processes(int(value)) if name == "processes" else RayCluster(value)
    if name != "processes":
        executor = Counting(executor, str(given.folder / "attempts"))
    documents = islice(read_documents(given.collection), given.posts)
    store, index = GraphStore(given.folder / "graphs"), MathAMRIndex(given.folder / "index")
    times = [time.perf_counter()]
    if not store.built():
        build_store(documents, GraphBuilder(), store, sources={}, executor=executor, shard_size=50)
    times.append(time.perf_counter())
    if not index.built():
        index_documents(store.ids(), store, MathAMR.from_pretrained("mathamr-plus-mini"), index, executor=executor)
    times.append(time.perf_counter())
    done = {"graphs": times[1] - times[0], "index": times[2] - times[1], "pieces": getattr(executor, "pieces", 0)}
    print(json.dumps(done), flush=True)
    sys.stdin.read()  # until the CPU time of all processes was read


class Trials:
    """Runs drivers, on two nodes that this process starts."""

    def __init__(self, given: argparse.Namespace, folder: Path) -> None:
        self.given, self.folder, self.number = given, folder, 0
        self.cluster: Any = None
        self.second: Any = None

    def nodes(self) -> str:
        """Return the address of the cluster, once both nodes are alive."""
        if self.given.address:
            return str(self.given.address)
        from ray.cluster_utils import Cluster

        if self.cluster is None:
            self.cluster = Cluster(initialize_head=True, head_node_args={**_NODE, "_system_config": _KEPT})
        if self.second is None:
            self.second = self.cluster.add_node(**{name: _NODE[name] for name in ("num_cpus", "object_store_memory")})
        return str(self.cluster.address)

    def kill_node(self) -> None:
        """Kill the second node."""
        self.cluster.remove_node(self.second, allow_graceful=False)
        self.second = None

    def place(self) -> Path:
        """Return a new folder for a build."""
        self.number += 1
        place = self.folder / f"build{self.number}"
        place.mkdir()
        return place

    def start(self, executor: str, place: Path) -> subprocess.Popen[str]:
        """Start a driver."""
        given = self.given
        command = [sys.executable, __file__, str(given.collection), given.what, "--posts", str(given.posts)]
        command += ["--part-bytes", str(given.part_bytes), "--build", executor, "--folder", str(place)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def finished(driver: subprocess.Popen[str]) -> dict[str, float]:
    """Wait for a driver to be done; return its measurements, and the CPU seconds of all processes below this one."""
    if driver.stdin is None or driver.stdout is None:
        raise RuntimeError("the driver has no pipes")
    for line in driver.stdout:
        if line.startswith("{"):
            found: dict[str, float] = {**json.loads(line), "cpu": cpu_below(os.getpid())}
            driver.stdin.close()
            driver.wait()
            return found
    raise RuntimeError(f"a driver ended with exit code {driver.wait()}")


def cpu_below(root: int) -> float:
    """Add up the CPU seconds of all processes that a process has started, directly or not, and of those they ended."""
    parents, seconds = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.name)], seconds[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15])) / _TICK

    def below(process: int) -> bool:
        while process in parents:
            process = parents[process]
            if process == root:
                return True
        return False

    return sum(spent for process, spent in seconds.items() if below(process))


def described(place: Path) -> dict[str, Any]:
    """Hash all files of a build, and count parts and orphans."""
    digest, orphans, parts = hashlib.sha256(), [], 0
    for name in ("graphs", "index"):
        meta = json.loads((place / name / "pt_meta.json").read_text())
        named = {"pt_meta.json"} | {part["name"] for part in meta["parts"]}
        orphans += [entry for entry in (place / name).iterdir() if entry.name not in named]
        parts = len(named) - 1
        for file in sorted(file for file in (place / name).rglob("*") if file.is_file()):
            digest.update(str(file.relative_to(place)).encode() + b"\0" + file.read_bytes())
    orphans += place.glob(".*")
    return {"hash": digest.hexdigest()[:16], "parts": parts, "orphans": len(orphans)}


def report(title: str, place: Path, pieces: float = 0) -> str:
    """Print a line; return the hash, with a mark if there are orphans."""
    found = described(place)
    noted = place / "attempts"
    attempts = noted.stat().st_size if noted.exists() else 0
    work = f"{pieces:5.0f} pieces {attempts:5} attempts" if attempts else " " * 27
    print(f"{title:34} {found['hash']}  {work}  {found['parts']:3} parts  {found['orphans']} orphans", flush=True)
    shutil.rmtree(place)
    return str(found["hash"]) + "!" * found["orphans"]


def compare_bytes(trials: Trials) -> int:
    """Build in every way; return the exit code."""
    hashes = set()
    for workers in (1, 2):
        place = trials.place()
        finished(trials.start(f"processes={workers}", place))
        hashes.add(report(f"Processes({workers})", place))
    address, place = trials.nodes(), trials.place()
    begun = time.perf_counter()
    found = finished(trials.start(f"ray={address}", place))
    took = time.perf_counter() - begun
    hashes.add(report("two nodes", place, found["pieces"]))
    if trials.given.address:
        return len(hashes) > 1
    draw = random.Random(0)
    for _ in range(trials.given.kills):
        address, place, wait = trials.nodes(), trials.place(), draw.uniform(0.05, 0.95) * took
        driver = trials.start(f"ray={address}", place)
        time.sleep(wait)
        trials.kill_node()
        found = finished(driver)
        hashes.add(report(f"a node killed after {wait:.1f} s", place, found["pieces"]))
    for share in (0.4, 0.6, 0.8):
        address, place = trials.nodes(), trials.place()
        driver = trials.start(f"ray={address}", place)
        time.sleep(share * took)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        found = finished(trials.start(f"ray={address}", place))
        hashes.add(report(f"the driver killed after {share * took:.1f} s", place, found["pieces"]))
    trials.cluster.shutdown()
    return len(hashes) > 1


def compare_time(trials: Trials) -> int:
    """Measure one process, two processes and two nodes in turn, and print medians."""
    trials.nodes()
    ways = ("processes=1", "processes=2", "ray={}")
    measured: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    trials.given.part_bytes = 64 << 20
    for _ in range(trials.given.rounds):
        for way in ways:
            place = trials.place()
            before = cpu_below(os.getpid())
            found = finished(trials.start(way.format(trials.nodes()), place))
            measured[way].append({**found, "cpu": found["cpu"] - before})
            shutil.rmtree(place)
    base = measured[ways[0]]
    for way, found_of in measured.items():
        cells = []
        for name in ("graphs", "index", "cpu"):
            ratio = statistics.median(of[name] / one[name] for of, one in zip(found_of, base, strict=True))
            cells.append(f"{name} {statistics.median(of[name] for of in found_of):6.1f} s ({ratio:.2f})")
        print(f"{way.format('two nodes'):16} {'  '.join(cells)}", flush=True)
    trials.cluster.shutdown()
    return 0


if __name__ == "__main__":
    main()
