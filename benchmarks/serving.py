"""The latency of ``mathamr serve`` with several users at a time, and whether broken requests disturb them.

``mathamr serve ENGINE``, and then ``python benchmarks/serving.py [ADDRESS] [--users 1,8,50] [--seconds 60]``. Each user
asks the next question as soon as the last one is answered, which no person does: 50 users here are some hundreds of
people. The table has the latency in milliseconds, answers in a second, errors, and the answers to the user who got
fewest, as a share of the mean.

``--hostile`` also sends questions that are made to occupy the server, two at a time throughout, and names the slowest.
``--serve ENGINE`` starts the server itself, and sends it SIGTERM at the end of each measurement, while
questions are still being sent: the table has the seconds until it has ended.

``--fuzz 10000`` sends that many random requests instead: paths, questions, broken percent encodings, giant headers,
bodies that never end, bytes that are no HTTP. A good question must have the same answer before, meanwhile and after.

``--cpu ENGINE [ENGINE …] [--before CLONE]`` prints the CPU time of each request without a server, in milliseconds, and
next to it two lower bounds: the scan of the vectors only, and the JSON of the answers only. Each engine is measured by
this clone and, in turns, by the clone of an earlier commit. ``--grow ENGINE TARGET POSTS`` makes a larger engine of
copies of the posts, whose vectors have noise; it has no formulas. ``--dtype int4`` stores them as an engine
that is built of 50,000 posts or more does.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import os
import random
import subprocess
import sys
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import numpy as np
import pandas as pd

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
PARAMETERS = {
    "search": ["q", "mode", "k", "offset", "weak", "format"],
    "explain": ["q", "docno", "format"],
    "preview": ["q", "mode"],
    "post": ["docno", "q", "start"],
    "graph/1.svg": ["theme"],
    "settings": ["format"],
    "openapi.json": [],
}
PATHS = ["search", *PARAMETERS]
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
LONGEST = 4_000
HOSTILE = {
    "dollars": "$" * LONGEST,
    "parentheses": f"${'(' * 40}$",
    "many parentheses": f"${'(' * (LONGEST - 2)}$",
    "fences": "$" + r"\left(" * 600 + "$",
    "nested exponents": f"${'x^{' * 990}{'}' * 990}$",
    "nested fractions": "$" + r"\frac{1}{" * 350 + "}" * 350 + "$",
    "open fractions": "$" + r"\frac{" * 660 + "$",
    "brackets": f"${'[' * (LONGEST - 2)}$",
    "angle brackets": "$" + r"\langle " * 490 + "$",
    "matrices": "$" + r"\begin{matrix}" * 130 + r"\end{matrix}" * 130 + "$",
    "definitions": "$" + r"\def\a{\a\a}" + r"\a" * 1_900 + "$",
    "many formulas": " ".join(f"$a_{{{i}}}$" for i in range(400)),
    "short formulas": "$a$ " * 1_000,
    "many words": " ".join(f"w{i}" for i in range(700)),
    "common words": ("the sum of a series is the limit of a function " * 90)[:LONGEST],
    "short sentences": "a. " * 1_300,
    "a long word": "abcdefgh" * 500,
    "letters of mathematics": "".join(chr(0x1D400 + i % 1_000) for i in range(LONGEST)),
    "combining marks": "a" + "\u0301" * (LONGEST - 1),
    "bare formulas": "x^2+1=0 " * 500,
}
"""Questions that are made to occupy a server, of at most as many characters as it accepts."""
_HOSTILE_AT_ONCE = 2
_PATIENCE = 120.0
_ROUNDS, _TURNS = 5, 3  # in which each question is asked, in each process
_AT_ONCE = 20
_CHECKED = 500  # requests between two checks


def measure_cpu(engine: str) -> dict[str, list[float]]:
    """Measure each request in this process: milliseconds of CPU time of every question."""
    from pyterrier_mathamr.engine import SearchEngine
    from pyterrier_mathamr.engine.page import Answers
    from pyterrier_mathamr.formula import one_text
    from pyterrier_mathamr.index.backend import query_batch
    from pyterrier_mathamr.index.search.folder import scan_codes

    answers = Answers(SearchEngine(engine))
    at, times = answers.engine, dict[str, list[float]]()
    vectors = at.indexes.vectors.snapshot()
    formulas = [question for question in QUESTIONS if "$" in question] if at.indexes.tangent.built() else []

    def timed(name: str, work: Callable[..., Any], *given: Any) -> str:
        start = time.process_time()
        found = json.dumps(work(*given))
        times.setdefault(name, []).append(1000 * (time.process_time() - start))
        return found

    def scan(batch: Any) -> None:
        deque(scan_codes(vectors.shards, batch, None), maxlen=0)

    with one_text(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for measured in (False, *[True] * _ROUNDS):
            for question in QUESTIONS:
                found = json.loads(timed("search", answers.search, question, "posts", True))
                timed("JSON only", lambda answer: answer, found)
                timed("scan only", scan, query_batch(at.encode()(at.frame(question)), vectors))
                docno = found["systems"][0]["results"][0]["docno"]
                if docno in at.indexes.graphs:
                    timed("Why?", answers.explain, question, docno)
            for question in formulas:
                timed("formulas", answers.search, question, "formulas")
            if not measured:  # everything is open
                times.clear()
    return times


def compare_cpu(engines: Sequence[str], before: str | None) -> pd.DataFrame:
    """Measure engines by this clone and another one, in turns; the median and the 95th percentile of each request."""
    clones = {**({"before": before} if before else {}), "now": str(Path(__file__).parents[1])}
    rows = []
    for engine in engines:
        kept: dict[tuple[str, str], list[float]] = {}
        for _ in range(_TURNS):
            for name, clone in clones.items():
                command = [sys.executable, __file__, "--measure", engine]
                environment = {**os.environ, "PYTHONPATH": str(clone), "OMP_NUM_THREADS": "1"}
                made = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
                for request, times in json.loads(made.splitlines()[-1]).items():
                    kept.setdefault((request, name), []).extend(times)
        for (request, name), times in sorted(kept.items()):
            rows.append((engine, request, name, *np.percentile(times, [50, 95]).round(1), len(times)))
    return pd.DataFrame(rows, columns=["engine", "request", "clone", "median", "p95", "number"])


def grow(source: str, target: str, posts: int, dtype: str | None) -> None:
    """Make an engine of copies of another one's posts; their vectors have noise, of a tenth of their length."""
    from pyterrier_mathamr.engine import SearchEngine
    from pyterrier_mathamr.engine.generations import Generations, Indexes
    from pyterrier_mathamr.store.parts import merged

    old = SearchEngine(source).snapshot()
    docnos, generations, noise = old.docnos(), Generations(Path(target)), np.random.default_rng(1)
    new = Indexes.of(generations.for_build(overwrite=False))
    new.posts.path.parent.mkdir(parents=True)
    copies = range(max(posts // len(docnos), 1))
    for name in ("posts", "bm25", "graphs"):
        index = getattr(old.indexes, name)
        details = index.snapshot().manifest.details
        with getattr(new, name).job("create", {"copies": posts}) as job:
            for number in copies if name != "graphs" else copies[:1]:
                for part in index.snapshot().parts:
                    content = merged([part])
                    job.add(dataclasses.replace(content, ids=[f"{number}-{docno}" for docno in content.ids]))
            job.commit(details, compact=name == "bm25")

    load = old.indexes.vectors.text_loader("formula_ids") >> old.indexes.vectors.vec_loader()

    def vectors() -> Iterator[dict[str, Any]]:
        for number in copies:
            for start in range(0, len(docnos), 500):
                for row in load(pd.DataFrame({"docno": docnos[start : start + 500]})).to_dict("records"):
                    rows = row["doc_embs"]
                    rows = rows + 0.1 * noise.normal(size=rows.shape).astype(np.float32) / np.sqrt(rows.shape[1])
                    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
                    yield {"docno": f"{number}-{row['docno']}", "doc_embs": rows, "formula_ids": row["formula_ids"]}

    dtype = dtype or old.indexes.vectors.snapshot().meta.dtype
    new.vectors.indexer("create", model=old.indexes.vectors.model, dtype=dtype).index(vectors())
    record = dataclasses.replace(old.record, sources={}, tombstones={}, macros={}, change="")
    generations.publish(new.posts.path.parent, record)


async def measure(address: str, users: int, seconds: float) -> dict[str, Any]:
    """Let users ask for a few seconds, and describe how they fared."""
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


async def ask_hostile(address: str, until: Callable[[], bool]) -> dict[str, Any]:
    """Send hostile questions one after another; return how many, their statuses, and the slowest ones."""
    slowest, statuses = Counter[str](), Counter[int]()
    requests = [
        (name, path, {"q": question, **options})
        for name, question in HOSTILE.items()
        for path, options in (("search", {}), ("search", {"mode": "formulas"}), ("preview", {}))
    ]

    async def ask(first: int) -> None:
        async with httpx.AsyncClient(base_url=address, timeout=_PATIENCE) as client:
            for name, path, parameters in islice(cycle(requests), first, None):
                if until():
                    return
                start = time.perf_counter()
                with contextlib.suppress(httpx.HTTPError):
                    statuses[(await client.get(f"api/{path}", params=parameters)).status_code] += 1
                slowest[name] = max(slowest[name], round(1000 * (time.perf_counter() - start)))

    await asyncio.gather(*(ask(number * len(requests) // _HOSTILE_AT_ONCE) for number in range(_HOSTILE_AT_ONCE)))
    return {"hostile": sum(statuses.values()), "statuses": dict(statuses), "slowest": dict(slowest.most_common(3))}


async def measure_hostile(address: str, users: int, seconds: float) -> dict[str, Any]:
    """Let users ask while hostile questions arrive."""
    end = time.perf_counter() + seconds
    found, hostile = await asyncio.gather(
        measure(address, users, seconds), ask_hostile(address, lambda: time.perf_counter() > end)
    )
    return {**found, **hostile}


@contextlib.contextmanager
def served(engine: str, token: str = "") -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve an engine in a separate process, warm, and yield its address."""
    command = [sys.executable, "-m", "pyterrier_mathamr", "serve", engine, "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "MATHAMR_TOKEN": token}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            address = line.split(": ", 1)[1].split()[0]
            for _ in range(4):  # by when its processes have opened the engine
                asked = {"params": {"q": QUESTIONS[0]}, "headers": {"Authorization": f"Bearer {token}"}}
                httpx.get(f"{address}api/search", timeout=_PATIENCE, **asked).raise_for_status()
                time.sleep(1)
            yield address, process
        finally:
            process.kill()


async def end_under_load(address: str, process: subprocess.Popen[str], users: int) -> float:
    """Send SIGTERM while questions of both kinds are being answered; return the seconds until the server has ended."""
    load = asyncio.gather(measure(address, users, 2), ask_hostile(address, lambda: process.poll() is not None))
    await asyncio.sleep(1)
    process.terminate()
    start = time.perf_counter()
    await asyncio.to_thread(process.wait, _PATIENCE)
    ended = time.perf_counter() - start
    await load
    return round(ended, 2)


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
    given = {
        "q": value, "docno": quote(text[:9]), "mode": chance.choice(["posts", "formulas", "%"]), quote(text[:5]): "",
        "format": chance.choice(["html", "text", "%"]), "theme": chance.choice(["dark", "x"]),
        **{name: chance.choice(["0", "1", "100", "9" * 5_000]) for name in ("k", "offset", "weak", "start")},
    }  # fmt: skip
    names = [name for name in PARAMETERS.get(path, given) if chance.random() < 0.7]
    if chance.random() < 0.1:
        names.append(chance.choice(list(given)))  # unknown, or once more
    target = f"/api/{path}?" + "&".join(f"{name}={given[name]}" for name in names)
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
    parser.add_argument("--hostile", action="store_true", help="also ask questions that are made to occupy the server")
    parser.add_argument("--serve", metavar="ENGINE", help="start the server, and end it by SIGTERM under load")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpu", nargs="+", metavar="ENGINE", help="measure the CPU time of requests, without a server")
    parser.add_argument("--before", metavar="CLONE", help="with --cpu: also measure another commit")
    parser.add_argument("--measure", metavar="ENGINE", help=argparse.SUPPRESS)
    parser.add_argument("--grow", nargs=3, metavar=("ENGINE", "TARGET", "POSTS"), help="make a larger engine")
    parser.add_argument("--dtype", help="with --grow: how its vectors are stored; by default as in ENGINE")
    given = parser.parse_args()
    if given.grow:
        grow(given.grow[0], given.grow[1], int(given.grow[2]), given.dtype)
        return
    if given.measure:
        print(json.dumps(measure_cpu(given.measure)))
        return
    if given.cpu:
        print(f"load {os.getloadavg()[0]:.0f}\n{compare_cpu(given.cpu, given.before).to_string(index=False)}")
        return
    asked = measure_hostile if given.hostile else measure
    if given.serve:
        for users in map(int, given.users.split(",")):
            with served(given.serve) as (address, process):
                found = asyncio.run(asked(address, users, given.seconds))
                print({**found, "seconds to end": asyncio.run(end_under_load(address, process, users))}, flush=True)
        return
    if given.fuzz:
        print(asyncio.run(fuzz(given.address, given.fuzz, given.seed)))
        return
    for users in map(int, given.users.split(",")):
        print(asyncio.run(asked(given.address, users, given.seconds)))


if __name__ == "__main__":
    main()
