"""The B × B MaxSim matrix of training against einsum, forward and backward: time, memory and agreement.

    python benchmarks/maxsim.py [--batch 256] [--device cpu]

B questions and B answers have 4 to 29 rows of 32 dimensions. Einsum pads them and keeps B × B × n × m similarities
several times over; ``maxsim_matrix`` keeps the position of each maximum. One thread; on a CPU, CPU time. Each runs in a
separate process, which reports the growth of its peak memory. ``--only`` leaves einsum out.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn.functional import normalize, pad
from torch.nn.utils.rnn import pad_sequence

from pyterrier_mathamr.model import maxsim_matrix

Score = Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor]
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def ours(rows: torch.Tensor, counts: torch.Tensor, batch: int) -> torch.Tensor:
    """Compute the matrix by ``maxsim_matrix``."""
    ends = pad(counts.cumsum(0), (1, 0))
    middle = int(ends[batch])
    return maxsim_matrix(rows[:middle], ends[: batch + 1], rows[middle:], ends[batch:] - middle)


def einsum(rows: torch.Tensor, counts: torch.Tensor, batch: int) -> torch.Tensor:
    """Compute the matrix by padding and ``einsum``."""
    posts = pad_sequence(torch.split(rows, counts.tolist()), batch_first=True)
    missing = torch.arange(posts.size(1), device=rows.device) >= counts.unsqueeze(1)
    similarity = torch.einsum("ind,jmd->ijnm", posts[:batch], posts[batch:])
    best = similarity.masked_fill(missing[batch:][None, :, None], -torch.inf).amax(3)
    return best.masked_fill(missing[:batch][:, None], 0.0).sum(2)


SCORES: dict[str, Score] = {"maxsim_matrix": ours, "einsum": einsum}


def measure(name: str, batch: int, device: str) -> tuple[float, float, torch.Tensor, torch.Tensor]:
    """Return milliseconds, MiB, scores and gradient."""
    torch.set_num_threads(1)
    on_cpu = device == "cpu"
    clock = time.process_time if on_cpu else time.perf_counter
    for size in (2, batch):  # the first run warms torch up
        generator = torch.Generator().manual_seed(0)
        counts = torch.randint(4, 30, (2 * size,), generator=generator)
        rows = normalize(torch.randn(int(counts.sum()), 32, generator=generator), dim=1).to(device).requires_grad_()
        counts = counts.to(device)
        before = held(on_cpu)
        start = clock()
        scores = SCORES[name](rows, counts, size)
        scores.square().mean().backward()
        if not on_cpu:
            torch.cuda.synchronize()
        milliseconds = 1000 * (clock() - start)
    return milliseconds, peak(on_cpu) - before, scores.detach().cpu(), rows.grad.cpu()


def held(on_cpu: bool) -> float:
    """Reset the peak, and return the MiB in use."""
    if on_cpu:
        CLEAR.write_text("5")
        return field("VmRSS")
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated() / 2**20


def peak(on_cpu: bool) -> float:
    """Return the peak in MiB since then."""
    return field("VmHWM") if on_cpu else torch.cuda.max_memory_allocated() / 2**20


def field(name: str) -> float:
    """Return a number of the kernel in MiB; Linux only."""
    return next(int(line.split()[1]) / 1024 for line in STATUS.read_text().splitlines() if line.startswith(name))


def main() -> None:
    """Print one line for each implementation."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--batch", type=int, default=256)
    options.add_argument("--device", default="cpu")
    options.add_argument("--only", action="store_true", help="only maxsim_matrix")
    args = options.parse_args()
    results = {}
    for name in list(SCORES)[: 1 if args.only else None]:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            results[name] = pool.apply(measure, (name, args.batch, args.device))
        milliseconds, memory = results[name][:2]
        print(f"{name:14} B = {args.batch:5} {milliseconds:9.1f} ms {memory:9.1f} MiB")
    if len(results) == 2:
        worst = [(a - b).abs().max().item() for a, b in zip(*(result[2:] for result in results.values()), strict=True)]
        print(f"scores agree to {worst[0]:.0e}, gradients to {worst[1]:.0e}")


if __name__ == "__main__":
    main()
