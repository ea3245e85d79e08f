"""Examine the environment of a parser: missing parts, and how to install them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pyterrier_mathamr.amr import DependencyAmrParser

from .parsers import PYTHON_VARIABLE, TRANSITION_MODEL
from .workers import WorkerProcess

ForeignParser = Literal["transition", "amrlib"]
ParserName = Literal["dependency", ForeignParser]
EXAMINATION_SECONDS = 300.0
_DOCS = "docs/install.md describes it"

_PINS = {
    "transition": {
        "transition-neural-parser": "0.5.4", "torch": "1.13.1", "numpy": "1.23.5", "fairseq": "0.10.2",
        "torch-scatter": "2.1.1",
    },
    "amrlib": {"amrlib": "0.8.1", "torch": "2.3", "transformers": "4.16", "penman": "1.3"},
}  # fmt: skip
_OTHER_VERSION = {
    "transition-neural-parser": "the worker is written for 0.5.4",
    "torch": "transition-neural-parser 0.5.4 is built for 1.13.1",
    "numpy": "fairseq 0.10.2 uses names that later versions dropped; at most 1.23.5",
    "fairseq": "the parser needs 0.10.2 exactly",
}
_FILES = {
    "checkpoint": "the weights of the model: the first parse downloads them; offline, copy them there",
    "machine_config": "the parser's rules, next to its weights: unpack the whole released zip file",
    "bart_code": "fairseq's code in the torch hub: the first parse downloads it; offline, copy it there",
    "bart_weights": "BART's weights: the first parse downloads them; offline, copy them there",
    "model": "the model: unpack one of the parse models of github.com/bjascob/amrlib-models there",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        good: whether the check passed.
        what: the observation.
        remedy: what to do where it did not pass.
        needed: whether the parser cannot work without it.
    """

    good: bool
    what: str
    remedy: str = ""
    needed: bool = True


def examine(parser: ParserName, python: str = "", model: str = "") -> list[Finding]:
    """Examine the environment of a parser, in its own interpreter.

    Args:
        parser: name of the parser.
        python: its interpreter; by default this one for amrlib, ``MATHAMR_TRANSITION_PYTHON`` for transition.
        model: the model whose files are checked; by default the parser's default model.

    Returns:
        The findings, in the order in which to fix them. The parser works if all required ones are good.
    """
    if parser == "dependency":
        DependencyAmrParser().parse_sentences(["It works."])
        return [Finding(True, "the embedded parser works, and needs no other package")]
    if parser == "transition":
        python, model = python or os.environ.get(PYTHON_VARIABLE, ""), model or TRANSITION_MODEL
        if not python:
            remedy = f"make an environment ({_DOCS}), and pass --python or set {PYTHON_VARIABLE}"
            return [Finding(False, "no interpreter was given", remedy)]
    python = python or sys.executable
    try:
        process = WorkerProcess(python, "")
    except OSError as error:
        return [Finding(False, f"{python} cannot be run: {error}", "pass the path of the environment's bin/python")]
    try:
        reply = process.ask({"do": "check", "parser": parser, "model": model}, EXAMINATION_SECONDS)
    except ConnectionError as error:
        what = f"{python} does not run the worker: {error}. {process.tail}"
        return [Finding(False, what, "pass an interpreter of Python 3.8 or later")]
    finally:
        process.kill()
    if "report" not in reply:
        return [Finding(False, f"{python}: {reply.get('message')}", "pass an interpreter of Python 3.8 or later")]
    return list(_findings(parser, python, model, reply["report"]))


def _findings(parser: ForeignParser, python: str, model: str, report: Mapping[str, Any]) -> Iterator[Finding]:
    version = str(report["python"])
    right = parser != "transition" or version.startswith("3.8.")
    remedy = f"torch 1.13.1 and fairseq 0.10.2 need Python 3.8: make the environment with it; {_DOCS}"
    yield Finding(right, f"{python} is Python {version}", remedy, needed=False)
    for package, version_found in report["packages"].items():
        yield _package(parser, python, package, version_found)
    if all(report["packages"].values()):
        what = f"importing it fails: {report['import']}" if report["import"] else "it can be imported"
        yield Finding(not report["import"], what, f"make the environment again; {_DOCS}")
    devices = report["devices"]
    what = f"{devices} CUDA devices" if devices else "no CUDA device"
    yield Finding(devices > 0, what, "it works on the CPU, about ten times slower", needed=False)
    yield from _files(model, report["files"])


def _files(model: str, files: Mapping[str, Mapping[str, str | None]]) -> Iterator[Finding]:
    """Check the files; files that the first parse downloads are not required."""
    is_path = "/" in model or model.endswith(".pt")
    for name, file in files.items():
        if name == "machine_config" and not files["checkpoint"]["found"]:
            continue  # downloaded with the weights
        path, at = file["found"], file["at"]
        downloaded = name.startswith("bart") or (name == "checkpoint" and not is_path)
        yield Finding(path is not None, path or f"nothing at {at}", _FILES[name], needed=not downloaded)


def _package(parser: ForeignParser, python: str, package: str, found: str | None) -> Finding:
    pin = _PINS[parser][package]
    if not found:
        wanted = f"{package}=={pin}" if parser == "transition" else f"'{package}>={pin}'"
        if parser == "amrlib" and python == sys.executable:
            wanted = "'pyterrier-mathamr-systems[amrlib]'"
        extra = " -f https://data.pyg.org/whl/torch-1.13.1+cu117.html" if package == "torch-scatter" else ""
        return Finding(False, f"{package} is not installed", f"pip install {wanted}{extra}")
    if parser == "transition" and package in _OTHER_VERSION:
        right = found.partition("+")[0] == pin if package != "numpy" else _numbers(found) <= _numbers(pin)
        return Finding(right, f"{package} {found}", f"{_OTHER_VERSION[package]}: pip install {package}=={pin}")
    if package == "amrlib":
        return Finding(_numbers(found) >= _numbers(pin), f"{package} {found}", f"pip install '{package}>={pin}'")
    return Finding(True, f"{package} {found}")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("+")[0].split(".") if part.isdigit())
