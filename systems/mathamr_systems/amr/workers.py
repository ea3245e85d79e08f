"""Neural parsers in processes of other interpreters: texts with keys, batches, answers, and one worker on each device.

    texts ─ batches by length ─▶ WorkerPool ─▶ Worker of a device ─▶ serve.py in the foreign interpreter: load, parse
      ▲                            │
      └ cache ◀── answers ◀────────┘

    batch fails     its halves are queued behind the other batches; a single text that fails is returned as failed
    worker breaks   it died, timed out or violated the protocol: it is killed and restarted, and the batch has failed
    repeatedly      when a worker breaks the sixth time in a row without a parse, the job ends

As halves are queued behind other halves, one bad text breaks a worker at most twice in a row. Before the last restarts
are spent on large batches, single texts are tried, so that a few bad texts do not end the job.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pyterrier_mathamr.amr import AmrError, AmrGraph, ParserUnavailableError, decode_penman, encode_penman
from pyterrier_mathamr.extending import Child, ConfigError, parse_json, spell, variables_of_worker
from pyterrier_mathamr.posts import TOKEN

ParseUnit = Literal["documents", "sentences"]

EMPTY = "(a / amr-empty)"
_ALIGNMENT = re.compile(r"~(?:[a-z]\.)?\d+(?:,\d+)*$")
_PLACEHOLDER = re.compile(r"formula_(\d+)(?:-\d+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WorkerCommand:
    """The command that starts a worker: the parser's name, interpreter, model and options."""

    parser: str
    python: str
    model: str
    options: Mapping[str, Any]

    def text(self, sentences: Sequence[str], mode: ParseUnit) -> Text:
        """Key a text by all that its graph depends on: 32 hexadecimal digits of the hash of parser and text."""
        whole = [self.parser, self.model, dict(self.options), mode, list(sentences)]
        key = hashlib.sha256(json.dumps(whole, sort_keys=True).encode("ascii")).hexdigest()[:32]
        return Text(key, tuple(sentences), sum(len(TOKEN.findall(sentence)) for sentence in sentences))

    def not_loaded(self, reason: str) -> ParserUnavailableError:
        """Return the error of a parser that its interpreter cannot load."""
        remedy = f"See what is missing with: mathamr doctor --parser {self.parser} --python {self.python}"
        return ParserUnavailableError(f"cannot be loaded by {self.python}: {reason}", self.parser, remedy)


@dataclass(frozen=True, slots=True)
class Text:
    """Sentences that are parsed together; ``key`` identifies them in the cache and in messages."""

    key: str
    sentences: tuple[str, ...]
    tokens: int = field(default=0, compare=False)


def batches(texts: Sequence[Text], batch_tokens: int) -> Iterator[tuple[Text, ...]]:
    """Cut texts into batches, the longest first, each of at most ``batch_tokens`` tokens when padded to its longest."""
    batch: list[Text] = []
    for text in sorted(texts, key=lambda text: (-text.tokens, text.key)):
        if batch and batch[0].tokens * (len(batch) + 1) > batch_tokens:
            yield tuple(batch)
            batch = []
        batch.append(text)
    if batch:
        yield tuple(batch)


@dataclass(frozen=True, slots=True)
class ParserAnswer:
    """The result of parsing a text: Penman text on one line, or why there is no graph."""

    graph: str = ""
    error: str = ""

    def to_bytes(self) -> bytes:
        """Write the answer for the cache: ``graph:`` or ``error:``, and the text."""
        text = f"error:{self.error}" if self.error else f"graph:{self.graph}"
        return text.encode("utf-8", "surrogatepass")

    @classmethod
    def from_bytes(cls, data: bytes) -> ParserAnswer:
        """Read what :meth:`to_bytes` wrote."""
        kind, _, text = data.decode("utf-8", "surrogatepass").partition(":")
        return cls(**{kind: text})


def read_answer(annotation: object) -> ParserAnswer:
    if not isinstance(annotation, str):
        return ParserAnswer(error="no graph")
    if not annotation.strip():
        return ParserAnswer(EMPTY)
    try:
        return ParserAnswer(encode_penman(_cleaned(decode_penman(annotation))))
    except AmrError as error:
        return ParserAnswer(error=str(error).partition("\n")[0])


def _cleaned(graph: AmrGraph) -> AmrGraph:
    """Remove metadata and alignments, and restore placeholders."""
    labels = tuple(_PLACEHOLDER.sub(r"FORMULA_\1", label) if _PLACEHOLDER.fullmatch(label) else label
                   for label in graph.labels)  # fmt: skip
    names = set(filter(None, graph.variables))
    spellings = []
    for node, atom in graph.spellings:
        bare = _ALIGNMENT.sub("", atom)
        if labels[node] == graph.labels[node] and bare != spell(labels[node], () if graph.variables[node] else names):
            spellings.append((node, bare))
    return replace(graph, labels=labels, metadata=(), spellings=tuple(spellings), alignments=())


SERVE = Path(__file__).with_name("serve.py")

_MOST = 64 << 20  # bytes of a reply; the graphs of a batch have a few hundred thousand


class WorkerProcess:
    """A running worker: a request and a reply are one line of JSON each."""

    def __init__(self, python: str, device: str) -> None:
        self._child = Child([python, str(SERVE)], environment(python, device, os.environ), subprocess.PIPE)
        self._number = 0

    @property
    def tail(self) -> str:
        return self._child.tail.decode("utf-8", "replace").strip()

    @property
    def ended(self) -> bool:
        return not self._child.running

    def ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request and wait for its reply.

        Raises:
            ConnectionError: the worker died, did not answer in time or violated the protocol.
        """
        self._number += 1
        try:
            answer = self._child.ask(json.dumps({"id": self._number, **request}).encode("ascii"), seconds, _MOST)
        except TimeoutError as error:
            raise ConnectionError(str(error)) from error
        except (EOFError, OSError) as error:
            raise ConnectionError(self._child.how_it_ended()) from error
        try:
            reply = parse_json(answer)
        except ValueError:
            reply = None
        if not isinstance(reply, dict) or reply.get("id") != self._number:
            raise ConnectionError(f"it answered {answer[:80]!r} to request {self._number}")
        return reply

    def kill(self) -> None:
        """Kill the worker and its children; a request that waits is broken."""
        self._child.kill()


def environment(python: str, device: str, inherited: Mapping[str, str]) -> dict[str, str]:
    found = {**variables_of_worker(one_thread=False), **inherited}
    if python != sys.executable:
        for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
            found.pop(name, None)
    kind, _, number = device.partition(":")
    if kind == "cpu":
        found["CUDA_VISIBLE_DEVICES"] = ""
    elif number:
        visible = [name.strip() for name in inherited.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
        found["CUDA_VISIBLE_DEVICES"] = visible[int(number)] if int(number) < len(visible) else number
    return found


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Limits of each worker.

    Attributes:
        batch_tokens: tokens in a batch, including padding; a longer text is a batch by itself.
        load_seconds: time to load the parser's weights, including a download.
        batch_seconds: time for a batch of any size, plus ``token_seconds`` for each token.
        token_seconds: time for each token of a batch.
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
        """Return the time that a batch of so many tokens may take."""
        return self.batch_seconds + self.token_seconds * tokens


class DeviceWorker:
    """A worker on one device, started when needed and restarted after it breaks."""

    def __init__(self, command: WorkerCommand, device: str, limits: WorkerLimits) -> None:
        self.command, self.device, self.limits = command, device, limits
        self._process: WorkerProcess | None = None
        self._breaks = 0
        self._suspects: list[tuple[str, ParserAnswer]] = []

    def answers(
        self, batch: Sequence[Text], mode: ParseUnit, stopped: threading.Event
    ) -> Iterator[list[tuple[str, ParserAnswer]]]:
        """Parse a batch until it is done or ``stopped`` is set; yield the answers by key, some at a time."""
        waiting = deque([batch])
        while waiting and not stopped.is_set():
            texts = waiting.popleft()
            if len(texts) > 1 and self._breaks >= max(1, self.limits.restarts - 2):
                waiting.appendleft(texts[1:])
                texts = texts[:1]
            try:
                parsed = self._parsed(texts, mode, stopped)
            except ParserUnavailableError:
                raise
            except AmrError as error:
                if stopped.is_set():
                    return  # no text is to blame
                if len(texts) > 1:
                    middle = len(texts) // 2
                    waiting += [texts[:middle], texts[middle:]]
                else:
                    self._suspects.append((texts[0].key, ParserAnswer(error=str(error))))
                    if not self._breaks:
                        yield self.suspects()
            else:
                yield self.suspects() + parsed

    def suspects(self) -> list[tuple[str, ParserAnswer]]:
        """Return and forget the texts that failed by themselves, once it is clear that the worker is not the cause."""
        taken, self._suspects = self._suspects, []
        return taken

    def close(self) -> None:
        process, self._process = self._process, None
        if process:
            process.kill()

    def _parsed(
        self, texts: Sequence[Text], mode: ParseUnit, stopped: threading.Event
    ) -> list[tuple[str, ParserAnswer]]:
        """Request the graphs of texts.

        Raises:
            AmrError: the batch failed; its halves may succeed. ParserUnavailableError: so would every other batch.
        """
        request = {"do": "parse", "mode": mode, "texts": [[text.key, list(text.sentences)] for text in texts]}
        reply = self._asked(request, self.limits.seconds(sum(text.tokens for text in texts)), stopped)
        if "error" in reply:
            raise AmrError(str(reply.get("message", reply["error"])))
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
            return (self._process or self._started()).ask(request, seconds)
        except ConnectionError as error:
            raise self._broken(str(error), counts=not stopped.is_set()) from error

    def _started(self) -> WorkerProcess:
        try:
            process = self._process = WorkerProcess(self.command.python, self.device)
        except OSError as error:
            raise self.command.not_loaded(str(error)) from error
        load = {"do": "load", "parser": self.command.parser, "model": self.command.model}
        reply = process.ask({**load, "options": dict(self.command.options)}, self.limits.load_seconds)
        if "error" in reply:
            self.close()
            raise self.command.not_loaded(str(reply.get("message", "")))
        return process

    def _broken(self, reason: str, counts: bool = True) -> AmrError:
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
        return AmrError(f"the worker broke: {reason}")


class WorkerPool:
    """Workers, one on each device, that share the batches of a job."""

    def __init__(self, command: WorkerCommand, devices: Sequence[str], limits: WorkerLimits) -> None:
        self._workers = [DeviceWorker(command, device, limits) for device in devices]

    def run(
        self,
        batches: Iterable[Sequence[Text]],
        mode: ParseUnit,
        settle: Callable[[Sequence[tuple[str, ParserAnswer]]], None],
    ) -> None:
        """Parse batches, and call ``settle`` with the answers by key, some at a time."""
        waiting, lock, stopped = deque(batches), threading.Lock(), threading.Event()

        def work(worker: DeviceWorker) -> None:
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
                wait(jobs, return_when=FIRST_EXCEPTION)
            finally:  # after an error or Ctrl-C no thread waits for a parse that is no longer wanted
                stopped.set()
                while wait(jobs, 0.1).not_done:
                    self.close()
            for job in jobs:
                job.result()

    def close(self) -> None:
        for worker in self._workers:
            worker.close()
