"""Batches over workers: one thread for each device.

    batch fails     its halves are queued behind the other batches; a single text that fails is returned as failed
    worker breaks   it died, timed out or violated the protocol: it is killed and restarted, and the batch has failed
    repeatedly      when a worker breaks the sixth time in a row without a parse, the job ends

As halves are queued behind other halves, one bad text breaks a worker at most twice in a row. Before the last restarts
are spent on large batches, single texts are tried, so that a few bad texts do not end the job.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.amr.errors import ParserUnavailableError

from .messages import Answer, Mode, Text, WorkerCommand, read_answer
from .process import WorkerBrokenError, WorkerProcess

Settle = Callable[[Sequence[tuple[str, Answer]]], None]


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Limits of each worker.

    Attributes:
        batch_tokens: tokens in a batch, including padding; a longer text is a batch of its own.
        load_seconds: time to load the parser's weights, including a download.
        batch_seconds: time for a batch of any size, to which is added
        token_seconds: time for each of its tokens.
        restarts: how often in a row a worker is restarted without having parsed anything.

    Raises:
        ConfigError: a limit is not positive, ``restarts`` is negative.
    """

    batch_tokens: int = 4000
    load_seconds: float = 1800.0
    batch_seconds: float = 120.0
    token_seconds: float = 0.5
    restarts: int = 5

    def __post_init__(self) -> None:
        for name in ("batch_tokens", "load_seconds", "batch_seconds"):
            if getattr(self, name) <= 0:
                raise ConfigError(name, getattr(self, name), "a positive number")
        for name in ("token_seconds", "restarts"):
            if getattr(self, name) < 0:
                raise ConfigError(name, getattr(self, name), "0 or a positive number")

    def seconds(self, tokens: int) -> float:
        """Return the time limit of a batch with that many tokens."""
        return self.batch_seconds + self.token_seconds * tokens


class _BatchFailedError(Exception):
    """A batch failed; its halves may succeed."""


class Worker:
    """A worker on one device, started when needed and restarted after it breaks."""

    def __init__(self, command: WorkerCommand, device: str, limits: WorkerLimits) -> None:
        self.command, self.device, self.limits = command, device, limits
        self._process: WorkerProcess | None = None
        self._breaks = 0
        self._suspects: list[tuple[str, Answer]] = []

    def answers(
        self, batch: Sequence[Text], mode: Mode, stopped: threading.Event
    ) -> Iterator[list[tuple[str, Answer]]]:
        """Parse a batch until it is done or ``stopped`` is set; yield the answers by key, some at a time."""
        waiting = deque([batch])
        while waiting and not stopped.is_set():
            texts = waiting.popleft()
            if len(texts) > 1 and self._breaks >= max(1, self.limits.restarts - 2):
                waiting.appendleft(texts[1:])
                texts = texts[:1]
            try:
                found = self._parsed(texts, mode, stopped)
            except _BatchFailedError as error:
                if stopped.is_set():
                    return  # no text is to blame
                if len(texts) > 1:
                    middle = len(texts) // 2
                    waiting += [texts[:middle], texts[middle:]]
                else:
                    self._suspects.append((texts[0].key, Answer(error=str(error))))
                    if not self._breaks:
                        yield self.suspects()
            else:
                yield self.suspects() + found

    def suspects(self) -> list[tuple[str, Answer]]:
        """Return and forget the texts that failed alone, once it is clear that the worker is not the cause."""
        taken, self._suspects = self._suspects, []
        return taken

    def close(self) -> None:
        """End the process."""
        if self._process:
            self._process.kill()
            self._process = None

    def _parsed(self, texts: Sequence[Text], mode: Mode, stopped: threading.Event) -> list[tuple[str, Answer]]:
        """Request the graphs of texts."""
        request = {"do": "parse", "mode": mode, "texts": [[text.key, list(text.sentences)] for text in texts]}
        reply = self._asked(request, self.limits.seconds(sum(text.tokens for text in texts)), stopped)
        if "error" in reply:
            raise _BatchFailedError(str(reply.get("message", reply["error"])))
        graphs = reply.get("graphs")
        keyed = graphs if isinstance(graphs, list) else []
        if [entry[0] for entry in keyed if isinstance(entry, list) and len(entry) == 2] != [text.key for text in texts]:
            raise self._broken("its answer is for other texts")
        self._breaks = 0
        return [(key, read_answer(annotation)) for key, annotation in keyed]

    def _asked(self, request: Mapping[str, Any], seconds: float, stopped: threading.Event) -> dict[str, Any]:
        """Send a request, to a new process where none is running."""
        if self._process and self._process.ended:
            self.close()  # it ended between two batches; no text is to blame
        try:
            return (self._process or self._started(stopped)).ask(request, seconds, stopped)
        except WorkerBrokenError as error:
            raise self._broken(str(error), counts=not stopped.is_set()) from error

    def _started(self, stopped: threading.Event) -> WorkerProcess:
        """Start the process and load the parser."""
        try:
            process = self._process = WorkerProcess(self.command.python, self.device)
        except OSError as error:
            raise self.command.not_loaded(str(error)) from error
        load = {"do": "load", "parser": self.command.parser, "model": self.command.model}
        reply = process.ask({**load, "options": dict(self.command.options)}, self.limits.load_seconds, stopped)
        if "error" in reply:
            self.close()
            raise self.command.not_loaded(str(reply.get("message", "")))
        return process

    def _broken(self, reason: str, counts: bool = True) -> Exception:
        """End a broken worker and return the error to raise: a failed batch, or too many breaks in a row."""
        tail = self._process.tail if self._process else ""
        self.close()
        self._breaks += counts
        if self._breaks > self.limits.restarts:
            where = f" on {self.device}" if self.device else ""
            printed = f" The worker's last output:\n{tail[-1000:]}" if tail else ""
            return ParserUnavailableError(
                f"was stopped{where} after {self.limits.restarts} restarts without a parse: {reason}",
                self.command.parser,
                f"A job with a cache continues from there when it is run again.{printed}",
            )
        return _BatchFailedError(f"the worker broke: {reason}")


class WorkerPool:
    """Workers, one on each device, that share the batches of a job."""

    def __init__(self, command: WorkerCommand, devices: Sequence[str], limits: WorkerLimits) -> None:
        self._workers = [Worker(command, device, limits) for device in devices]

    def run(self, batches: Iterable[Sequence[Text]], mode: Mode, settle: Settle) -> None:
        """Parse batches."""
        waiting, lock, stopped = deque(batches), threading.Lock(), threading.Event()

        def work(worker: Worker) -> None:
            try:
                while not stopped.is_set():
                    with lock:
                        batch = waiting.popleft() if waiting else ()
                    if not batch:
                        break
                    for portion in worker.answers(batch, mode, stopped):
                        with lock:
                            settle(portion)
                failed = worker.suspects()
                if not stopped.is_set():
                    with lock:
                        settle(failed)
            except BaseException:
                stopped.set()
                raise

        busy = self._workers[: len(waiting)]
        with ThreadPoolExecutor(max(1, len(busy)), "amr-worker") as threads:
            jobs = [threads.submit(work, worker) for worker in busy]
            try:
                for job in jobs:
                    job.result()
            except BaseException:  # Ctrl-C, too: no thread waits for a parse that is no longer wanted
                stopped.set()
                raise

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.close()
