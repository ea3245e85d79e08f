"""Time and memory of one R-GCN layer, forward and backward, against PyTorch Geometric's two, on one core.

    python benchmarks/rgcn.py [--graphs 64] [--repeat 5] [--device cpu] [--only]

The batch has the paper's size: graphs of 156 nodes and 320 directed edges, 532 relations whose frequencies fall like
1/rank (a few roles are everywhere, most are rare), hidden 64, 64 bases. The layers share their weights; the outputs
must agree before anything is timed. Our time includes sorting the edges, which the layers of an encoder share. Times
are CPU time on a CPU and wall-clock time on a GPU. Memory is the layer's peak: of the process on a CPU
(each layer in a separate process), of torch's allocator on a GPU.

The floor is the work that no such layer can avoid, at this machine's speed for one large product and one large copy:
the multiplications of equation 2.4 and of its gradients with as few rows as the plan finds, and writing and reading
each array once. The rest is sorting, hundreds of small products and memory allocation.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch_geometric.nn import FastRGCNConv, RGCNConv

from pyterrier_mathamr.model import RelationalGraphConv
from pyterrier_mathamr.model.rgcn import RelationPlan

NODES, EDGES, RELATIONS, HIDDEN, BASES = 156, 320, 532, 64, 64
LAYERS = {"RelationalGraphConv": RelationalGraphConv, "FastRGCNConv": FastRGCNConv, "RGCNConv": RGCNConv}
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def batch_of(graphs: int, device: str) -> Batch:
    """Draw a batch: states ``[N, 64]``, edges ``[2, e]``, relations ``[e]``."""
    chance = torch.Generator().manual_seed(0)
    first = torch.arange(graphs).repeat_interleave(EDGES) * NODES
    edges = torch.randint(NODES, (2, graphs * EDGES), generator=chance) + first
    relations = torch.multinomial(1 / torch.arange(1.0, RELATIONS + 1), graphs * EDGES, True, generator=chance)
    states = torch.randn(graphs * NODES, HIDDEN, generator=chance)
    return states.to(device).requires_grad_(), edges.to(device), relations.to(device)


def layer_of(name: str, device: str) -> torch.nn.Module:
    """Build a layer; all three have the same weights."""
    torch.manual_seed(1)
    state = RelationalGraphConv(HIDDEN, HIDDEN, RELATIONS, BASES).state_dict()
    layer = LAYERS[name](HIDDEN, HIDDEN, RELATIONS, BASES)
    layer.load_state_dict(state)
    return layer.to(device)


def step(layer: torch.nn.Module, batch: Batch) -> None:
    """Run forward and backward once, its plan included."""
    layer(*batch).square().mean().backward()
    if batch[0].is_cuda:
        torch.cuda.synchronize()


def floor(batch: Batch, device: str, ours: float) -> str:
    """Report the operations and bytes that a step needs, their milliseconds, and how far we are from that."""
    states, edges, relations = batch
    plan = RelationPlan.build(edges, relations, len(states), tile=1)
    nodes, rows, k = len(states), sum(plan.sizes), len(plan.sizes)
    # Three products each, forward and for both gradients: W_r from the bases, the rows by W_r, the nodes by W_0.
    work = 3 * 2 * HIDDEN**2 * (k * BASES + rows + nodes)
    # Rows pass collect, W_r and spread: 4 times forward, 6 backward; nodes likewise; W_r and its gradient 3 times each.
    moved = 4 * (10 * HIDDEN * (rows + nodes) + 6 * k * HIDDEN**2)
    left, right = torch.randn(16_384, HIDDEN, device=device), torch.randn(HIDDEN, HIDDEN, device=device)
    from_, to = torch.randn(2, rows * HIDDEN, device=device)
    rate = 2 * left.numel() * HIDDEN / fastest(lambda: torch.mm(left, right), device)
    speed = 2 * 4 * from_.numel() / fastest(lambda: to.copy_(from_), device)
    least = 1000 * (work / rate + moved / speed)
    return (
        f"floor: {work / 1e9:.2f} GFLOP at {rate / 1e9:.0f} GFLOP/s and {moved / 1e6:.0f} MB at {speed / 1e9:.0f} GB/s "
        f"take {least:.1f} ms; ours is {ours / least:.1f} times that"
    )


def fastest(work: Callable[[], object], device: str) -> float:
    """Seconds of the fastest of fifty runs."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    runs = []
    for _ in range(50):
        start = clock()
        work()
        if device != "cpu":
            torch.cuda.synchronize()
        runs.append(clock() - start)
    return min(runs)


def peak(name: str, graphs: int, device: str) -> float:
    """MiB that one step adds to the peak of this process."""
    torch.set_num_threads(1)
    layer, batch = layer_of(name, device), batch_of(graphs, device)
    if device != "cpu":
        step(layer, batch)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step(layer, batch)
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    step(layer, batch_of(1, device))  # what torch itself needs
    layer.zero_grad()
    CLEAR.write_text("5")  # the peak is measured from here
    before = resident("VmRSS")
    step(layer, batch)
    return (resident("VmHWM") - before) / 1024


def resident(field: str) -> int:
    """Return the KiB of memory of this process, now (``VmRSS``) or at its peak (``VmHWM``); Linux only."""
    return int(re.search(rf"{field}:\s+(\d+)", STATUS.read_text()).group(1))


def main() -> None:
    """Print one line for each layer: milliseconds, ratio to RGCNConv, MiB."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--graphs", type=int, default=64)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--device", default="cpu")
    options.add_argument("--only", action="store_true", help="only RelationalGraphConv, against the floor")
    args = options.parse_args()
    torch.set_num_threads(1)
    batch = batch_of(args.graphs, args.device)
    layers = {name: layer_of(name, args.device) for name in list(LAYERS)[: 1 if args.only else None]}
    outputs = {name: layer(*batch).detach() for name, layer in layers.items()}
    worst = max((outputs["RelationalGraphConv"] - output).abs().max().item() for output in outputs.values())
    if worst > 1e-4:
        raise SystemExit(f"the layers disagree by {worst:.1e}")
    clock = time.process_time if args.device == "cpu" else time.perf_counter  # a busy machine changes neither
    times = {}
    for name, layer in layers.items():
        step(layer, batch)
        runs = []
        for _ in range(args.repeat):
            start = clock()
            step(layer, batch)
            runs.append(1000 * (clock() - start))
        times[name] = statistics.median(runs)
    ours = times["RelationalGraphConv"]
    print(f"{args.graphs} graphs, forward + backward, {args.device}, one thread; outputs agree to {worst:.0e}")
    print(floor(batch, args.device, ours))
    for name, milliseconds in times.items():
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            memory = pool.apply(peak, (name, args.graphs, args.device))
        print(f"{name:20} {milliseconds:9.1f} ms  {milliseconds / ours:6.1f} x ours  {memory:8.1f} MiB")


if __name__ == "__main__":
    main()
