"""One job in a process of its own: ``python -m pyterrier_mathamr.experiments.studies.worker job.json``."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from pyterrier_mathamr.experiments.stages import to_stderr

from .job import Job
from .training import run_job


def main() -> None:
    """Do the job that the file named on the command line describes."""
    torch.set_num_threads(1)
    run_job(Job.from_json(Path(sys.argv[1]).read_text(encoding="utf-8")), say=to_stderr)


if __name__ == "__main__":
    main()
