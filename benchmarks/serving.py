"""The latency of ``mathamr serve`` with several users at a time, and whether broken requests disturb them.

``mathamr serve ENGINE``, and then ``python benchmarks/serving.py [ADDRESS] [--users 1,8,50] [--seconds 60]``. Each user
asks the next question as soon as the last one is answered, which no person does: 50 users here are some hundreds of
people. The table has the latency in milliseconds, answers in a second, errors, and the answers to the user who got
fewest, as a share of the mean.

``--fuzz 10000`` sends that many random requests instead: paths, questions, broken percent encodings, giant headers,
bodies that never end, bytes that are no HTTP. A good question must have the same answer before, meanwhile and after.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import time
from collections import Counter
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import numpy as np

QUESTIONS = [
    r"How do I show that $\sum_{n=1}^\infty \frac{1}{n^2}$ converges?",
    r"Why does $\sum 1/n$ diverge?",
    r"How do I compute $\int_0^\infty e^{-x^2}\,dx$ by hand?",
    r"prove that a continuous function on a compact set is bounded",
    r"What is $\lim_{x\to 0}\frac{\sin x}{x}$?",
    r"Is $\sqrt2+\sqrt3$ irrational?",
    r"number of ways to choose $k$ elements of $n$, $\binom{n}{k}$",
    r"eigenvalues of a symmetric matrix are real",
    r"solve $x^2 + y^2 = z^2$ in integers",
    r"Does $a_{n+1} = \sqrt{2 + a_n}$ converge?",
    r"closed form of $\sum_{k=0}^n k^3$",
    r"every group of prime order is cyclic",
]
PATHS = ["search", "search", "explain", "preview", "post", "graph/1.svg", "settings", "openapi.json"]
VALUES = ["%", "%zz%f", "%ff%fe%00", "$" * 999, "%7B" * 4000, "%F0%9F%98%80" * 4000, "x" * 5000, "%5Cfrac%7B" * 300]
METHODS = ["GET", "GET", "GET", "GET", "GET", "POST", "HEAD", "BREW", ""]
HEADERS = [
    *["Host: localhost\r\n"] * 6,
    "",
    "Host: evil.example\r\n",
    "Host: localhost\r\nbad header\r\n",
    "Host: localhost\r\n" + "A: b\r\n" * 2_000,
    "Host: localhost\r\nX: " + "x" * 200_000 + "\r\n",
    "Host: localhost\r\nContent-Length: 1000000\r\n",
    "Host: localhost\r\nTransfer-Encoding: chunked\r\n",
    "Host: localhost\r\nUpgrade: websocket\r\nConnection: upgrade\r\n",
]
_PATIENCE = 120.0
_AT_ONCE = 20
_CHECKED = 500  # requests between two checks


async def measure(address: str, users: int, seconds: float) -> dict[str, Any]:
    """Let users ask for some seconds, and describe how they fared."""
    waited: list[list[float]] = [[] for _ in range(users)]
    errors = 0
    end = time.perf_counter() + seconds

    async def ask(user: int) -> None:
        nonlocal errors
        questions = random.Random(user)
        async with httpx.AsyncClient(base_url=address, timeout=120) as client:
            while time.perf_counter() < end:
                start = time.perf_counter()
                try:
                    answer = await client.get("api/search", params={"q": questions.choice(QUESTIONS)})
                    errors += answer.status_code != 200 or not answer.json()["systems"][0]["results"]
                except httpx.HTTPError:
                    errors += 1
                waited[user].append(time.perf_counter() - start)

    start = time.perf_counter()
    await asyncio.gather(*(ask(user) for user in range(users)))
    elapsed = time.perf_counter() - start
    times = 1000 * np.array([each for of_user in waited for each in of_user])
    answers = [len(of_user) for of_user in waited]
    percentiles = {f"p{q}": round(float(np.percentile(times, q))) for q in (50, 95, 99)}
    return {
        "users": users, "answers": len(times), **percentiles, "max": round(times.max()),
        "a second": round(len(times) / elapsed, 1), "errors": errors,
        "least share": round(min(answers) / float(np.mean(answers)), 2),
    }  # fmt: skip


def broken_request(chance: random.Random) -> tuple[bytes, bool]:
    """Make up a request: some are valid, most are not, some are sent in part only.

    Returns:
        The bytes, and whether to wait for an answer.
    """
    kind = chance.random()
    if kind < 0.1:
        return chance.randbytes(chance.randrange(1, 2_000)) + b"\r\n\r\n", True
    letters = [chance.choice([chance.randrange(128), chance.randrange(0x2000), 0x1D400, 0x202E]) for _ in range(99)]
    text = "".join(map(chr, chance.choices(letters, k=chance.randrange(200))))
    path, value = chance.choice([*PATHS, quote(text)]), chance.choice([*[quote(text)] * 6, *VALUES])
    target = f"/api/{path}?q={value}&docno={quote(text[:9])}&mode={chance.choice(['posts', 'formulas', '%'])}"
    line = f"{chance.choice(METHODS)} {target} HTTP/{chance.choice(['1.1', '1.1', '1.0', '9'])}\r\n"
    whole = f"{line}{chance.choice(HEADERS)}Connection: close\r\n\r\n".encode("utf-8", "ignore")
    return (whole[: chance.randrange(1, len(whole))], False) if kind < 0.25 else (whole, True)


async def send(host: str, port: int, request: bytes, *, wait: bool) -> str:
    """Send bytes and read the answer's status: ``closed`` where there is none, ``left`` where nobody waits for it."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        with contextlib.suppress(ConnectionError):
            writer.write(request)
            await writer.drain()
            if not wait:
                return "left"
            status = await asyncio.wait_for(reader.readline(), _PATIENCE)
            return status.split()[1].decode() if status.startswith(b"HTTP") else "closed"
        return "closed"
    except TimeoutError:
        return "no answer"
    finally:
        writer.close()


async def fuzz(address: str, count: int, seed: int) -> dict[str, int]:
    """Send broken requests, and count the statuses of their answers.

    Raises:
        RuntimeError: a good question had another answer.
    """
    host, port = urlsplit(address).hostname or "", urlsplit(address).port or 80
    chance, statuses = random.Random(seed), Counter[str]()

    async def good() -> list[str]:
        async with httpx.AsyncClient(base_url=address, timeout=120) as client:
            found = (await client.get("api/search", params={"q": QUESTIONS[0]})).json()
            return [result["docno"] for result in found["systems"][0]["results"]]

    async def sent(request: bytes, wait: bool) -> None:
        statuses[await send(host, port, request, wait=wait)] += 1

    expected = await good()
    for done in range(0, count, _AT_ONCE):
        batch = [broken_request(chance) for _ in range(min(_AT_ONCE, count - done))]
        asked = good() if done % _CHECKED < _AT_ONCE else None
        jobs = [sent(request, wait) for request, wait in batch]
        answers = await asyncio.gather(*jobs, *([asked] if asked else []))
        if asked and answers[-1] != expected:
            raise RuntimeError(f"after {done} requests the answer was {answers[-1]}, not {expected}")
    if await good() != expected:
        raise RuntimeError("the answer is another one at the end")
    return dict(statuses.most_common())


def main() -> None:
    """Measure a server that is running."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("address", nargs="?", default="http://localhost:8000/")
    parser.add_argument("--users", default="1,8,50")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--fuzz", type=int, help="send so many broken requests instead")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.fuzz:
        print(asyncio.run(fuzz(given.address, given.fuzz, given.seed)))
        return
    for users in map(int, given.users.split(",")):
        print(asyncio.run(measure(given.address, users, given.seconds)))


if __name__ == "__main__":
    main()
