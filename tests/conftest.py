"""Shared by all tests: no network (see pytest's options), steady random examples, the place of the large real data."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3  # noqa: F401 - it opens a socket when it is first imported, which is refused and warned of within a test
from hypothesis import settings

# A slow machine is not a failure; if CI is set the examples are the same in every run.
settings.register_profile("steady", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("steady")

# A shell lets what it starts in the background ignore Ctrl-C, and tests that press it would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(os.environ.get("MATHAMR_TEST_DATA", Path(__file__).resolve().parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets that some tests need; they are skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"no test data at {SHARED}; set MATHAMR_TEST_DATA to its folder")
    return SHARED


@pytest.fixture(scope="session", autouse=True)
def nothing_is_synced() -> Iterator[None]:
    """Do not wait for the disk: what a killed process has written stays, and no test cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
