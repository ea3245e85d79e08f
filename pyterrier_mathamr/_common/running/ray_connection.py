"""The connection of this process to a Ray cluster: made once, and kept until the process ends.

::

    auto         the cluster that this machine is a node of, or that RAY_ADDRESS names
    HOST:PORT    the cluster with this head
    local        this machine alone, for trying: Ray is started and ends with the process
"""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr._common.extras import require
from pyterrier_mathamr._common.parameters import Rule

ADDRESS = Rule(
    "'auto', 'local' or the HOST:PORT of a cluster's head",
    lambda value: isinstance(value, str) and bool(re.fullmatch(r"auto|local|[^:/\s]+:\d+", value)),
)
"""What names a cluster."""

_STORE_BYTES = 512 << 20
"""Shared memory of a node that is started here; by default Ray takes 30 % of the machine's."""

_PATIENCE = 10.0  # seconds for a head to answer


class ClusterError(MathAMRError):
    """A Ray cluster cannot be reached, or cannot do the work."""

    address: str
    reason: str
    template = "Ray cluster {address}: {reason}."


def connect(address: str = "auto") -> Any:
    """Connect this process to a Ray cluster, unless it is connected already."""
    ray = require("ray", "ray")
    if ray.is_initialized():
        there = ray.get_runtime_context().gcs_address
        if address not in ("auto", "local", there):
            raise ClusterError(address, f"this process is connected to {there}; one process uses one cluster")
        return ray
    where = {"num_cpus": os.cpu_count(), "object_store_memory": _STORE_BYTES, "include_dashboard": False}
    options: dict[str, Any] = where if address == "local" else {}
    try:
        _knock(address)
        with _signals_kept():
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **options)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        reason = f"it cannot be reached ({str(error).strip().partition(chr(10))[0]})"
        advice = "`ray start --head` starts a cluster, `ray start --address=HOST:PORT` on another machine joins it"
        raise ClusterError(address, f"{reason}; {advice}") from error
    return ray


def _knock(address: str) -> None:
    """Open and close a connection to a head; Ray itself tries for more than a minute where there is none."""
    host, colon, port = address.partition(":")
    if colon:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Keep the handler of SIGTERM, which Ray replaces by one that ends the process without its notes."""
    here = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM) if here else None
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
