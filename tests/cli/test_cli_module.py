"""The package as a module, which launchers of several processes need."""

import subprocess
import sys

from pyterrier_mathamr._version import __version__


def test_the_package_is_the_command() -> None:
    command = [sys.executable, "-m", "pyterrier_mathamr", "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown == f"mathamr, version {__version__}\n"
