"""Several jobs at a time, each a process of its own with one thread.

A process of its own makes the peak memory that of the job, and keeps a job that dies from taking others along; one
thread makes the result the same however many run beside it.


One job in a process of its own: ``python -m pyterrier_mathamr.experiments.studies.workers job.json``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from pyterrier_mathamr.experiments.stages import to_stderr

from .job import Job
from .working import run_job

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_POLL_SECONDS = 0.2


def run_jobs(jobs: Sequence[Job], workers: int, say: Callable[[str], None]) -> dict[Path, str]:
    """Do jobs side by side; one that fails does not stop the others.

    Where this process is interrupted the jobs under way are ended, to go on when they are asked for again.

    Args:
        jobs: what to do; those of the same folder are done one after another.
        workers: how many at a time, at least 1.
        say: is told of each job that begins or ends.

    Returns:
        For each job that failed, its folder and the last line that it left in ``log.txt`` there.
    """
    waiting, running, failed = list(jobs), dict[Path, tuple[Job, subprocess.Popen[bytes]]](), dict[Path, str]()
    started: dict[Path, float] = {}
    try:
        while waiting or running:
            for job in [job for job in waiting if job.folder not in running][: workers - len(running)]:
                if job.folder in running:
                    continue
                waiting.remove(job)
                running[job.folder] = (job, _start(job))
                started[job.folder] = time.perf_counter()
                say(f"{_name(job)}: begins, {len(waiting)} wait")
            time.sleep(_POLL_SECONDS)
            for folder, (job, process) in list(running.items()):
                code = process.poll()
                if code is None:
                    continue
                del running[folder]
                took = f"after {time.perf_counter() - started[folder]:.0f} s"
                if code:
                    failed[folder] = _last_line(folder / "log.txt") or f"exit code {code}"
                    say(f"{_name(job)}: failed {took}: {failed[folder]}")
                else:
                    say(f"{_name(job)}: finished {took}")
    except KeyboardInterrupt as error:
        finished = len(jobs) - len(waiting) - len(running) - len(failed)
        error.add_note(
            f"{finished} finished runs and the checkpoints of {len(running)} more are kept in {jobs[0].workdir}"
        )
        raise
    finally:
        for _, process in running.values():
            process.kill()  # its work is kept as it is
        for _, process in running.values():
            process.wait()
    return failed


def one_thread(environment: Mapping[str, str]) -> dict[str, str]:
    """Give an environment in which the numerical libraries use one thread.

    Args:
        environment: what else is in it.
    """
    return {**environment, **dict.fromkeys(THREADS, "1")}


def _start(job: Job) -> subprocess.Popen[bytes]:
    job.folder.mkdir(parents=True, exist_ok=True)
    file = job.folder / "job.json"
    file.write_text(job.to_json(), encoding="utf-8")
    command = [sys.executable, "-m", "pyterrier_mathamr.experiments.studies.workers", str(file)]
    with (job.folder / "log.txt").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=one_thread(os.environ))


def _name(job: Job) -> str:
    options = ", ".join(f"{name}={value}" for name, value in job.settings.items() if name not in ("pairs", "seed"))
    return f"{job.folder.name} ({options or 'defaults'}; seed {job.config.seed})"


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def main() -> None:
    """Do the job that the file named on the command line describes."""
    torch.set_num_threads(1)
    run_job(Job.from_json(Path(sys.argv[1]).read_text(encoding="utf-8")), say=to_stderr)


if __name__ == "__main__":
    main()
