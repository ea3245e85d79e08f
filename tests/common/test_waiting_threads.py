"""OpenMP's threads sleep while they wait: in the command line and in each process that is started."""

import os
import subprocess
import sys

import pytest

from pyterrier_mathamr._common.running.processes import Processes
from pyterrier_mathamr._common.running.worker import Worker

POLICY = "OMP_WAIT_POLICY"
PROGRAM = """
import os, sys
from pyterrier_mathamr.cli import main

before = os.environ.get("OMP_WAIT_POLICY")
sys.argv = ["mathamr", "--version"]
try:
    main()
except SystemExit:
    print(before, os.environ.get("OMP_WAIT_POLICY"), {"numpy", "torch"} & set(sys.modules))
"""


def policy_of(_: object = None) -> str | None:
    return os.environ.get(POLICY)


@pytest.fixture(params=[None, "ACTIVE"])
def policy(request, monkeypatch) -> str | None:
    if request.param is None:
        monkeypatch.delenv(POLICY, raising=False)
    else:
        monkeypatch.setenv(POLICY, request.param)
    return request.param


def test_the_command_line_sets_the_policy_before_libraries_are_loaded_unless_the_user_did(policy) -> None:
    printed = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == f"{policy} {policy or 'PASSIVE'} set()"


def test_processes_that_are_started_have_the_policy_and_this_one_keeps_its_own(policy) -> None:
    wanted = policy or "PASSIVE"
    assert Worker(policy_of)() == wanted
    assert set(Processes(2).map(policy_of, range(9))) == {wanted}
    assert policy_of() == policy
