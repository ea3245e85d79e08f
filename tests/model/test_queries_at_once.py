"""The vectors of a query do not depend on who else encodes at the same time."""

import os
import subprocess
import sys

SCRIPT = """
from concurrent.futures import ThreadPoolExecutor
from pyterrier_mathamr import TextEncoder

questions = [f"Why does {word} $1/n^{i}$ converge?" for i in range(16) for word in "abcd"]
encoder = TextEncoder().for_queries.tokens

def encoded(threads):
    with ThreadPoolExecutor(threads) as pool:
        return [rows.tobytes() for rows in pool.map(lambda question: encoder.encode([question]), questions)]

alone = encoded(1)
for _ in range(10):
    assert encoded(4) == alone
"""


def test_four_threads_encode_64_questions_to_the_bytes_of_one_ten_times() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    environment |= {"OMP_NUM_THREADS": "2"} if len(os.sched_getaffinity(0)) == 1 else {}
    subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True)
