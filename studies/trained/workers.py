"""Run several jobs at a time, each in a process of its own with one thread.

A process of its own measures the peak memory of the job, and a job that dies does not stop the others; one thread makes
the result independent of the number of jobs. Each writes its stages and progress bars to a log, of which this process
shows the last line.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import pyterrier as pt
import torch

from pyterrier_mathamr.experiments.stages import to_stderr

from .job import Job
from .job_run import run_job

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_POLL_SECONDS = 0.2
_TAIL = 4096  # bytes of a log in which its last line is looked for
_BARS = {"TQDM_MININTERVAL": "2"}  # seconds between two states of a bar in a log


def run_jobs(
    jobs: Sequence[Job], workers: int, say: Callable[[str], None], *, verbose: bool = False
) -> dict[Path, str]:
    """Do jobs in parallel; one that fails does not stop the others."""
    waiting, running, failed = list(jobs), dict[Path, tuple[Job, subprocess.Popen[bytes]]](), dict[Path, str]()
    started: dict[Path, float] = {}
    shown = _Shown(len(jobs), verbose)
    try:
        while waiting or running:
            for job in [job for job in waiting if job.folder not in running][: workers - len(running)]:
                if job.folder in running:
                    continue
                waiting.remove(job)
                running[job.folder] = (job, start(job))
                started[job.folder] = time.perf_counter()
                say(f"{name_of(job)}: begins, {len(waiting)} wait")
            time.sleep(_POLL_SECONDS)
            shown.update(running, len(jobs) - len(waiting) - len(running))
            for folder, (job, process) in list(running.items()):
                code = process.poll()
                if code is None:
                    continue
                del running[folder]
                took = f"after {time.perf_counter() - started[folder]:.0f} s"
                if code:
                    failed[folder] = last_line(folder / "log.txt") or f"exit code {code}"
                    say(f"{name_of(job)}: failed {took}: {failed[folder]}")
                else:
                    say(f"{name_of(job)}: finished {took}")
    except KeyboardInterrupt as error:
        finished = len(jobs) - len(waiting) - len(running) - len(failed)
        error.add_note(
            f"{finished} finished runs and the checkpoints of {len(running)} more are kept in {jobs[0].workdir}"
        )
        raise
    finally:
        shown.close()
        for _, process in running.values():
            process.kill()  # its finished work is kept
        for _, process in running.values():
            process.wait()
    return failed


class _Shown:
    """A line below those of the jobs: how many are finished, the time left, and what one that runs is doing."""

    def __init__(self, total: int, verbose: bool) -> None:
        form = "runs: {n_fmt}/{total_fmt} [{elapsed}<{remaining}]{postfix}"
        self._bar = pt.tqdm(total=total, bar_format=form, dynamic_ncols=True, disable=not verbose)
        self._next = 0.0

    def update(self, running: Collection[Path], finished: int) -> None:
        """Show the state, at most once a second."""
        if self._bar.disable or time.perf_counter() < self._next:
            return
        self._next = time.perf_counter() + 1
        doing = next((f"{folder.name[:8]}: {last_line(folder / 'log.txt')}" for folder in running), "")
        self._bar.n = finished
        self._bar.set_postfix_str(doing)

    def close(self) -> None:
        """End the line."""
        self._bar.close()


def one_thread(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with one thread for each numerical library."""
    return {**environment, **dict.fromkeys(THREADS, "1")}


def write_job(job: Job) -> Path:
    """Write a job to its folder, for the process that does it."""
    job.folder.mkdir(parents=True, exist_ok=True)
    file = job.folder / "job.json"
    file.write_text(job.to_json(), encoding="utf-8")
    return file


def start(job: Job, *, with_parent: bool = False) -> subprocess.Popen[bytes]:
    """Start a process that does a job."""
    command = [sys.executable, "-c", f"from {__name__} import main; main()", str(write_job(job))]
    command += [str(os.getpid())] * with_parent
    with (job.folder / "log.txt").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env={**one_thread(os.environ), **_BARS})


def name_of(job: Job) -> str:
    """Name a job for its lines: folder, settings, seed."""
    options = ", ".join(f"{name}={value}" for name, value in job.settings.items() if name not in ("pairs", "seed"))
    return f"{job.folder.name} ({options or 'defaults'}; seed {job.config.training.seed})"


def last_line(log: Path) -> str:
    """Return the last line of a log that is not blank."""
    with log.open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - _TAIL, 0))
        text = file.read().decode(errors="replace")
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def main() -> None:
    """Do the job in the file that the command line names, as long as the process is there that it names, if any."""
    torch.set_num_threads(1)
    if len(sys.argv) > 2:
        threading.Thread(target=_end_with, args=(int(sys.argv[2]),), daemon=True).start()
    run_job(Job.from_json(Path(sys.argv[1]).read_text(encoding="utf-8")), say=to_stderr, verbose=True)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
