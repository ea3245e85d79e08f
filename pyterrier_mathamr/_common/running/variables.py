"""The environment variables of numerical libraries: how many threads they start, and how these wait for each other.

OpenMP's threads wait in a loop, so that a thread that waits on a busy machine keeps the core that the others need: work
on two threads then takes several times as long as on one. With the policy ``PASSIVE`` a waiting thread sleeps.
Libraries read the variables when they are loaded.
"""

from __future__ import annotations

import os

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def variables_of_worker(*, one_thread: bool) -> dict[str, str]:
    """Return the variables of a process that is started; values that the user set are kept."""
    chosen = {"OMP_WAIT_POLICY": "PASSIVE", **(dict.fromkeys(_THREADS, "1") if one_thread else {})}
    return {name: os.environ.get(name, value) for name, value in chosen.items()}


def wait_passively() -> None:
    """Set the policy in this process, for libraries that are loaded later, unless the user set one."""
    os.environ.update(variables_of_worker(one_thread=False))
