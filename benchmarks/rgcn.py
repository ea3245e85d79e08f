"""Time and memory of one R-GCN layer, forward and backward, against PyTorch Geometric's two, on one core.

    python benchmarks/rgcn.py [--graphs 64] [--repeat 5] [--device cpu]

The batch has the paper's size: graphs of 156 nodes and 320 directed edges, 532 relations whose frequencies fall like
1/rank (a few roles are everywhere, most are rare), hidden 64, 64 bases. The layers share their weights; the outputs
must agree before anything is timed. Our time includes sorting the edges, which the layers of an encoder share. Times
are of the processor on a CPU, of the clock on a GPU. Memory is what the layer adds at its peak: of the process on a
CPU (each layer in a process of its own), of torch's allocator on a GPU.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import statistics
import time
from pathlib import Path

import torch
from torch_geometric.nn import FastRGCNConv, RGCNConv

from pyterrier_mathamr.model import RelationalGraphConv

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
    """Make a layer; all three have the same weights."""
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
    CLEAR.write_text("5")  # the peak counts from here
    before = resident("VmRSS")
    step(layer, batch)
    return (resident("VmHWM") - before) / 1024


def resident(field: str) -> int:
    """KiB of memory this process holds (``VmRSS``) or held at most (``VmHWM``); Linux only."""
    return int(re.search(rf"{field}:\s+(\d+)", STATUS.read_text()).group(1))


def main() -> None:
    """Print one line for each layer: milliseconds, ratio to RGCNConv, MiB."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--graphs", type=int, default=64)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--device", default="cpu")
    args = options.parse_args()
    torch.set_num_threads(1)
    batch = batch_of(args.graphs, args.device)
    layers = {name: layer_of(name, args.device) for name in LAYERS}
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
    for name, milliseconds in times.items():
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            memory = pool.apply(peak, (name, args.graphs, args.device))
        print(f"{name:20} {milliseconds:9.1f} ms  {milliseconds / ours:6.1f} x ours  {memory:8.1f} MiB")


if __name__ == "__main__":
    main()
