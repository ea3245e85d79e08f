"""Everything at once: does ``mathamr serve`` answer its readers while others attack it and the engine is updated?

::

    python benchmarks/endurance.py [--minutes 10] [--requests 5000] [--users 50] [--hostile 300] [--slow 600]

The script writes notes, builds an engine of them, and serves it with a token. Then, all at the same time:

* users ask for posts, formulas and previews, each from an address of its own, spread evenly over the minutes;
* ten hostile clients keep many searches open, with questions that are made to occupy the server;
* strangers without the token open connections, send a header and one byte of a body, and open others when these end;
* a writer changes notes, and runs ``mathamr update`` again and again.

A good request fails if it is not answered with status 200 and the note that it asks for. The table has the waits of
good requests in seconds, and the memory of the server and its processes in MB, after the first minute and at the end.
The exit code is 1 if a request failed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import quote, urlsplit

import numpy as np
from serving import HOSTILE, QUESTIONS, served

TOKEN = "benchmark-of-endurance"
NOTES, CHANGED = 300, 20  # the first ones are changed
FORMULAS = [r"\sum_{n=1}^\infty \frac{1}{n^2}", r"\frac{a+1}{b}", r"\sqrt{2}", r"a^2+b^2=c^2"]
_HOSTILE_CLIENTS = 10
_PATIENCE = 300.0
_PAUSE = 5.0  # seconds between updates, and until a stranger comes back


def write_note(folder: Path, number: int, edition: int = 0) -> None:
    """Write a note with words and a formula; the word ``note-NUMBER`` is in no other."""
    text = QUESTIONS[number % len(QUESTIONS)]
    formula = FORMULAS[number % len(FORMULAS)]
    (folder / f"{number}.md").write_text(f"# Note {number}\n\nnote{number}x {text}\n\n${formula}$, edition {edition}\n")


class Load:
    """What happens during the minutes, and how it went."""

    def __init__(self, address: str, seconds: float) -> None:
        self.host, self.port = urlsplit(address).hostname or "", urlsplit(address).port or 80
        self.end = time.monotonic() + seconds
        self.waits: list[float] = []
        self.failed, self.hostile = Counter[str](), Counter[str]()
        self.slow = self.updates = 0

    async def get(self, path: str, client: str) -> tuple[str, bytes]:
        """Ask over a connection of its own; return the status and the answer."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(
                f"GET /api/{path} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {client}\r\n"
                f"Authorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n".encode()
            )
            answer = await asyncio.wait_for(reader.read(), _PATIENCE)
            return answer[9:12].decode() or "closed", answer
        except (OSError, TimeoutError) as error:
            return type(error).__name__, b""
        finally:
            writer.close()

    async def use(self, number: int, requests: int) -> None:
        """Ask as a person does, evenly over the minutes."""
        chance, start = random.Random(number), time.monotonic()
        for request in range(requests):
            await asyncio.sleep(start + (request + chance.random()) * (self.end - start) / requests - time.monotonic())
            note = chance.randrange(CHANGED, NOTES)
            question = quote(f"note{note}x {QUESTIONS[note % len(QUESTIONS)]}")
            path, expected = chance.choice([
                (f"search?q={question}", f'"docno":"{note}.md'.encode()),
                (f"search?mode=formulas&q={quote(FORMULAS[note % len(FORMULAS)])}", b'"tier":"equal"'),
                (f"preview?q={question}", b'"kind":"mixed"' if "$" in QUESTIONS[note % len(QUESTIONS)] else b'"html"'),
            ])  # fmt: skip
            asked = time.monotonic()
            status, answer = await self.get(path, f"198.51.100.{number}")
            self.waits.append(time.monotonic() - asked)
            if status != "200" or expected not in answer:
                self.failed[f"{status} {path} {answer[-300:]!r}"[:500]] += 1

    async def attack(self, number: int) -> None:
        """Keep one hostile search open."""
        questions = list(HOSTILE.values())
        for turn in range(sys.maxsize):
            question = quote(questions[(number + turn) % len(questions)])
            mode = ("posts", "formulas")[turn % 2]
            client = f"192.0.2.{number % _HOSTILE_CLIENTS}"
            self.hostile[(await self.get(f"search?mode={mode}&q={question}", client))[0]] += 1

    async def hold(self) -> None:
        """Keep a connection open with a body that does not arrive."""
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection(self.host, self.port)
                writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000\r\n\r\nt")
                with contextlib.suppress(OSError):
                    await reader.read()
                writer.close()
                self.slow += 1
            await asyncio.sleep(_PAUSE)

    async def write(self, notes: Path, engine: Path) -> None:
        """Change a few notes and update the engine, again and again."""
        for edition in range(1, sys.maxsize):
            for number in range(CHANGED):
                write_note(notes, number, edition)
            command = [sys.executable, "-m", "pyterrier_mathamr", "update", "-o", str(engine)]
            process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            _, errors = await process.communicate()
            if process.returncode:
                self.failed[f"update: {errors.decode()[-200:]}"] += 1
            self.updates += 1
            await asyncio.sleep(_PAUSE)


def memory(process: subprocess.Popen[str]) -> int:
    """Return the memory of a process and its children, in MB; shared pages count by their share."""
    pids, total = [process.pid], 0
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            pids += map(int, (thread / "children").read_text().split())
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total // 1024


async def run(given: argparse.Namespace, folder: Path, address: str, process: subprocess.Popen[str]) -> Load:
    """Let everything happen, and print the table."""
    load = Load(address, 60 * given.minutes)
    jobs: list[Callable[[], Awaitable[None]]] = [
        *(lambda number=number: load.attack(number) for number in range(given.hostile)),
        *(load.hold for _ in range(given.slow)),
        lambda: load.write(folder / "notes", folder / "engine"),
    ]
    running = [asyncio.ensure_future(job()) for job in jobs]
    users = asyncio.gather(*(load.use(number, given.requests // given.users) for number in range(given.users)))
    await asyncio.sleep(min(60.0, 20 * given.minutes))
    before = memory(process)
    await users
    after = memory(process)
    for job in running:
        job.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    waits = [f"{seconds:.2f}" for seconds in np.percentile(load.waits, [50, 95, 100])]
    row = [
        f"{given.minutes:g}", len(load.waits), sum(load.failed.values()), *waits, load.hostile["200"],
        sum(load.hostile.values()) - load.hostile["200"], load.slow, load.updates, before, after,
    ]  # fmt: skip
    print(f"load of the machine {os.getloadavg()[1]:.0f}, {os.cpu_count()} cores")
    print("| minutes | good requests | failed | median | 95 % | longest | hostile answered | refused or stopped "
          "| slow bodies | updates | MB before | MB after |")  # fmt: skip
    print("|" + len(row) * "---:|")
    print(f"| {' | '.join(map(str, row))} |")
    for failure, count in load.failed.most_common(10):
        print(f"{count} × {failure}", file=sys.stderr)
    return load


def main() -> None:
    """Build, serve, and load an engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--requests", type=int, default=5_000, help="of all users together")
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--hostile", type=int, default=300, help="searches that hostile clients keep open")
    parser.add_argument("--slow", type=int, default=600, help="connections whose bodies do not arrive")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "notes").mkdir()
        for number in range(NOTES):
            write_note(folder / "notes", number)
        command = [sys.executable, "-m", "pyterrier_mathamr", "build", str(folder / "notes"), "-o"]
        subprocess.run([*command, str(folder / "engine")], check=True, capture_output=True)
        with served(str(folder / "engine"), TOKEN) as (address, process):
            load = asyncio.run(run(given, folder, address, process))
    sys.exit(bool(load.failed))


if __name__ == "__main__":
    main()
