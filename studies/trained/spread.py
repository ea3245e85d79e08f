"""The runs of a study on the nodes of a cluster: each a process of its own on the node that has room for it.

Their folders are on storage that all nodes share, as are collection and pairs. A run whose node died continues on
another after its last complete epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.running.processes import Executor

from .job import Job
from .workers import last_line, name_of, start, write_job


def spread_jobs(jobs: Sequence[Job], executor: Executor, say: Callable[[str], None]) -> dict[Path, str]:
    """Do jobs on an executor; one that fails does not stop the others."""
    folders: dict[Path, list[Job]] = {}
    for job in jobs:
        folders.setdefault(job.folder, []).append(job)
    if jobs and not executor.sees(write_job(jobs[0])):
        raise ConfigError("workdir", str(jobs[0].workdir), "a folder that all nodes of the cluster share")
    failed: dict[Path, str] = {}
    with closing(executor.map(do_jobs, folders.values())) as done:
        for (folder, of), reason in zip(folders.items(), done, strict=True):
            if reason:
                failed[folder] = reason
            say(f"{name_of(of[0])}: {f'failed: {reason}' if reason else 'finished'}")
    return failed


def do_jobs(jobs: Sequence[Job]) -> str:
    """Do jobs one after another, each in a process of its own; return why one failed, or nothing."""
    for job in jobs:
        process = start(job, with_parent=True)
        try:
            if code := process.wait():
                return last_line(job.folder / "log.txt") or f"exit code {code}"
        finally:
            process.kill()
    return ""
