"""Run several jobs at a time, each in a process of its own with one thread.

A process of its own measures the peak memory of the job, and a job that dies does not stop the others; one thread makes
the result independent of the number of jobs.
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
from .job_run import run_job

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_POLL_SECONDS = 0.2


def run_jobs(jobs: Sequence[Job], workers: int, say: Callable[[str], None]) -> dict[Path, str]:
    """Do jobs in parallel; one that fails does not stop the others.

    If this process is interrupted, the running jobs are killed; they continue the next time.

    Args:
        jobs: what to do; those of the same folder run one after another.
        workers: how many at a time, at least 1.
        say: receives a line for each job that begins or ends.

    Returns:
        The folder of each job that failed, and the last line of its ``log.txt``.
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
            process.kill()  # its finished work is kept
        for _, process in running.values():
            process.wait()
    return failed


def one_thread(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with one thread for each numerical library."""
    return {**environment, **dict.fromkeys(THREADS, "1")}


def _start(job: Job) -> subprocess.Popen[bytes]:
    job.folder.mkdir(parents=True, exist_ok=True)
    file = job.folder / "job.json"
    file.write_text(job.to_json(), encoding="utf-8")
    command = [sys.executable, "-c", f"from {__name__} import main; main()", str(file)]
    with (job.folder / "log.txt").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=one_thread(os.environ))


def _name(job: Job) -> str:
    options = ", ".join(f"{name}={value}" for name, value in job.settings.items() if name not in ("pairs", "seed"))
    return f"{job.folder.name} ({options or 'defaults'}; seed {job.config.training.seed})"


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def main() -> None:
    """Do the job in the file that the command line names."""
    torch.set_num_threads(1)
    run_job(Job.from_json(Path(sys.argv[1]).read_text(encoding="utf-8")), say=to_stderr)


if __name__ == "__main__":
    main()
