"""The answers of workers on disk: shards that only grow, one JSON object a line, safe to be killed at any time.

    {"key": "8f14e45fceea167a5a36dedd4bea2543", "graph": "(c / converge-01 ...)"}
    {"key": "c9f0f895fb98ab9159f51fd0297e236d", "error": "IndexError: index out of range"}

Each process appends to a shard of its own, which it holds a lock on; whoever takes up a shard that a killed process
left cuts its torn last line. What several processes wrote is read by all that open the folder later.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from .answers import Answer

SHARD_BYTES = 256 << 20
"""A shard of this size is not taken up again."""

_HEAD = b'{"key": "'
_KEY = slice(len(_HEAD), len(_HEAD) + 32)


class AnswerShards:
    """A folder of answers by key.

    Args:
        folder: made if it is not there.
        shard_bytes: size from which on a new shard is begun.

    Raises:
        OSError: the folder cannot be made or read.
    """

    def __init__(self, folder: Path, shard_bytes: int = SHARD_BYTES) -> None:
        self.folder, self._shard_bytes = folder, shard_bytes
        folder.mkdir(parents=True, exist_ok=True)
        self._places: dict[bytes, tuple[int, int]] = {}
        self._shard = -1
        self._file = -1
        self._size = 0
        for shard in sorted(folder.glob("shard-*.jsonl")):
            self._read(int(shard.stem[len("shard-") :]))

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        return bytes.fromhex(key) in self._places

    def __getitem__(self, key: str) -> Answer:
        shard, offset = self._places[bytes.fromhex(key)]
        with self._path(shard).open("rb") as lines:
            lines.seek(offset)
            record = json.loads(lines.readline())
        return Answer(record.get("graph", ""), record.get("error", ""))

    def add(self, answers: Iterable[tuple[str, Answer]]) -> None:
        """Append answers; after the return they outlive this process. A key that is there already is left as it is."""
        new = {key: answer for key, answer in answers if key not in self}
        if not new:
            return
        if self._file < 0 or self._size >= self._shard_bytes:
            self._take()
        offset = self._size
        lines = []
        for key, answer in new.items():
            said = {"error": answer.error} if answer.error else {"graph": answer.graph}
            lines.append(json.dumps({"key": key, **said}).encode("ascii") + b"\n")
            self._places[bytes.fromhex(key)] = (self._shard, offset)
            offset += len(lines[-1])
        rest = memoryview(b"".join(lines))
        while rest:
            rest = rest[os.write(self._file, rest) :]
        self._size = offset

    def close(self) -> None:
        """Give back the shard that is written to."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _path(self, shard: int) -> Path:
        return self.folder / f"shard-{shard:05d}.jsonl"

    def _take(self) -> None:
        """Take up the first shard that is not full and that no process holds, or begin one."""
        self.close()
        for shard in count():
            file = os.open(self._path(shard), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                continue
            size = self._read(shard)
            if size >= self._shard_bytes:
                os.close(file)
                continue
            os.ftruncate(file, size)
            self._file, self._shard, self._size = file, shard, size
            return

    def _read(self, shard: int) -> int:
        """Note where the answers of a shard lie; gives the length of its whole lines."""
        offset = 0
        with self._path(shard).open("rb") as lines:
            for line in lines:
                if not line.endswith(b"}\n"):
                    break  # torn by a kill, or being written at this moment
                if line.startswith(_HEAD):
                    self._places.setdefault(bytes.fromhex(line[_KEY].decode("ascii")), (shard, offset))
                offset += len(line)
        return offset
