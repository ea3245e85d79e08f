"""Neural parsers on a cluster: one in each worker, on the device that the worker was given.

A worker keeps its builder, and with it the parser's process, from batch to batch. The process ends with its worker.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.running.processes import Executor
from pyterrier_mathamr._common.running.ray_cluster import RayCluster
from pyterrier_mathamr.amr import WorkerParser

from .transformer import GraphBuilder


def on_devices(builder: GraphBuilder, parser: WorkerParser, executor: Executor) -> tuple[GraphBuilder, RayCluster]:
    """Prepare a builder and a cluster for a parser that has processes of its own."""
    if not isinstance(executor, RayCluster):
        raise ConfigError("executor", executor, f"Processes(1): the parser {parser.name} has processes of its own")
    on_processor = bool(parser.devices) and all(device.startswith("cpu") for device in parser.devices)
    alone, spread = copy(parser), copy(builder)
    alone.devices, alone.cache = ("cpu",) if on_processor else (), None
    spread.parser = alone
    if executor.resources is None and not on_processor:
        executor = replace(executor, resources={"GPU": 1})
    return spread, executor
