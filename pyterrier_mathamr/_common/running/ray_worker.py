"""What runs in the workers of a Ray cluster; Ray starts them, on any node.

A worker keeps the function that it maps, which may hold a parser or a model, from item to item.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr._version import __version__

from .processes import limit_cores

_kept: tuple[tuple[str, str | None], Callable[[Any], Any]] | None = None


class Done(NamedTuple):
    """A result, and the node that it comes from."""

    node: str
    result: Any


class OtherReleaseError(MathAMRError):
    """A node of a cluster has another release of this package."""

    node: str
    found: str
    wanted: str
    template = "node {node} has pyterrier-mathamr {found}, and the command runs with {wanted}."
    advice = "Install the same release on all nodes."


def do(key: str, work: list[Any], release: str, item: Any) -> Done:
    """Work on an item."""
    global _kept
    node, wanted = node_name(), (key, os.environ.get("CUDA_VISIBLE_DEVICES"))
    if _kept is None or _kept[0] != wanted:  # on another GPU it is made anew
        _kept = None
        _kept = (wanted, _fetched(work, release, node))
    return Done(node, _kept[1](item))


def _fetched(work: list[Any], release: str, node: str) -> Callable[[Any], Any]:
    """Fetch work to this worker, which from now on counts on the cores that it was given."""
    import ray

    if release != __version__:
        raise OtherReleaseError(node, __version__, release)
    limit_cores(int(os.environ.get("OMP_NUM_THREADS") or 1))
    function: Callable[[Any], Any] = ray.get(work[0])
    return function


def node_name() -> str:
    """Return the name of this node: that of the machine, and the beginning of Ray's own."""
    import ray

    return f"{socket.gethostname()}/{ray.get_runtime_context().get_node_id()[:6]}"


def content_of(file: Path) -> bytes | None:
    """Read a small file on this node; ``None`` where there is none."""
    try:
        return file.read_bytes()
    except OSError:
        return None
