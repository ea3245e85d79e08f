"""The runner of other projects' test suites counts what passed, and gives the reason of each failure."""

import subprocess
import sys
from pathlib import Path

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"
CLONE = """
import unittest


class TestPeer(unittest.TestCase):
    def test_passes(self):
        pass

    def test_fails_in_one_subtest(self):
        for name in ("fine", "broken"):
            with self.subTest(name):
                self.assertEqual(name, "fine")

    @unittest.skip("not here")
    def test_is_skipped(self):
        pass
"""


def test_each_test_counts_once_and_a_failure_has_its_reason(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_peer.py").write_text(CLONE, encoding="utf-8")
    code = f"from pathlib import Path; from tally import run; run(Path({str(tmp_path)!r}), ['tests/test_peer.py'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=PEERS, capture_output=True, text=True, check=True)
    assert "| `test_peer.py` | 1 | 1 | 1 |" in done.stdout
    assert "TestPeer::test_fails_in_one_subtest: AssertionError: 'broken' != 'fine'" in done.stdout
