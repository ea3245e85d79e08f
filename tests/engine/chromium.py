"""What tests in Chromium share; importing it skips a module where Playwright is missing, unless it is required."""

import importlib
import os
import shutil

import pytest

NEEDED = os.environ.get("MATHAMR_BROWSER") == "required"  # .ci/run sets it where it found or installed Chromium
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if not NEEDED:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
sync_api = importlib.import_module("playwright.sync_api")
PATIENCE = 60_000  # milliseconds after which a test gives up, not what is promised
sync_api.expect.set_options(timeout=PATIENCE)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
IN_CHROMIUM = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None and not NEEDED, reason="no Chromium on this machine"),
    pytest.mark.enable_socket,
]
