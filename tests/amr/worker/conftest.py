"""Foreign interpreters that are none: this Python without its packages, and fakes of the neural parsers instead."""

import sys
from pathlib import Path

import pytest
from worker_examples import LIMITS

from mathamr_systems import TransitionAmrParser

FOREIGN = Path(__file__).with_name("foreign")


@pytest.fixture
def marks(tmp_path, monkeypatch):
    """The folder where the fakes note what they did: `loaded` (process, device) and `parsed` (one text a line)."""
    folder = tmp_path / "marks"
    folder.mkdir()
    monkeypatch.setenv("FAKE_MARKS", str(folder))
    return folder


@pytest.fixture
def foreign_python(tmp_path, marks):
    """An interpreter that has the fakes installed; further folders of packages can be put in its `packages`."""
    (tmp_path / "packages").mkdir()
    return script(tmp_path / "python", f'PYTHONPATH={FOREIGN}:{tmp_path}/packages exec {sys.executable} -S "$@"')


@pytest.fixture
def transition(foreign_python):
    """Makes a parser whose interpreter is a fake, and ends it."""
    made = []

    def make(**options):
        made.append(TransitionAmrParser(foreign_python, **{"limits": LIMITS, **options}))
        return made[-1]

    yield make
    for parser in made:
        parser.close()


@pytest.fixture
def broken_python(tmp_path, marks):
    """Makes an interpreter that runs, whatever it is given, a worker that breaks the agreement in some way."""

    def make(way):
        return script(tmp_path / "broken", f'exec {sys.executable} -S {FOREIGN}/broken_worker.py {way} "$@"')

    return make


def script(path, line):
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path
