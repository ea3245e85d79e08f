"""What a foreign environment lacks, in plain words, each with what to do about it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .neural import TRANSITION_MODEL, transition_python
from .process import WorkerBrokenError, WorkerProcess

ForeignParser = Literal["transition", "amrlib"]
EXAMINATION_SECONDS = 300.0
_DOCS = "docs/parsers.md says how"

_PINS = {
    "transition": {
        "transition-neural-parser": "0.5.4", "torch": "1.13.1", "numpy": "1.23.5", "fairseq": "0.10.2",
        "torch-scatter": "2.1.1",
    },
    "amrlib": {"amrlib": "0.8.1", "torch": "2.3", "transformers": "4.16", "penman": "1.3"},
}  # fmt: skip
_OTHER_VERSION = {
    "transition-neural-parser": "0.5.4 is the version that the worker knows",
    "torch": "transition-neural-parser 0.5.4 is built for 1.13.1",
    "numpy": "fairseq 0.10.2 uses names that later ones dropped; at most 1.23.5",
    "fairseq": "the parser needs 0.10.2 exactly",
}
_FILES = {
    "checkpoint": "the weights of the model: the first parse downloads them, without a network copy them there",
    "machine_config": "the rules of the parser lie beside its weights: unpack the released zip file whole",
    "bart_code": "fairseq's code in the torch hub: the first parse downloads it, without a network copy it there",
    "bart_weights": "BART's own weights: the first parse downloads them, without a network copy them there",
    "model": "the model's folder: unpack one of the parse models of github.com/bjascob/amrlib-models there",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        good: whether it is as it should be.
        what: what was found.
        remedy: what to do where it is not good.
        needed: whether the parser cannot work without it.
    """

    good: bool
    what: str
    remedy: str = ""
    needed: bool = True


def examine(parser: ForeignParser, python: str = "", model: str = "") -> list[Finding]:
    """Examine the environment of a parser, in its own interpreter.

    Args:
        parser: the parser.
        python: the interpreter; by default this one for amrlib, that of ``MATHAMR_TRANSITION_PYTHON`` for transition.
        model: the model whose files are looked for; the parser's default one by default.

    Returns:
        What was found, in the order in which to mend it. The parser can be used where all that is needed is good.

    Raises:
        ConfigError: no interpreter is given for transition.
    """
    python = transition_python(python) if parser == "transition" else python or sys.executable
    model = model or (TRANSITION_MODEL if parser == "transition" else "")
    try:
        process = WorkerProcess(python, "")
    except OSError as error:
        return [Finding(False, f"{python} cannot be run: {error}", "give the path of the environment's bin/python")]
    try:
        reply = process.ask({"do": "check", "parser": parser, "model": model}, EXAMINATION_SECONDS)
    except WorkerBrokenError as error:
        told = f"{python} does not run the worker: {error}. {process.tail}"
        return [Finding(False, told, "give an interpreter of Python 3.8 or later")]
    finally:
        process.kill()
    if "report" not in reply:
        return [Finding(False, f"{python}: {reply.get('message')}", "give an interpreter of Python 3.8 or later")]
    return list(_findings(parser, python, model, reply["report"]))


def _findings(parser: ForeignParser, python: str, model: str, report: Mapping[str, Any]) -> Iterator[Finding]:
    """Turn the worker's report into words."""
    version = str(report["python"])
    right = parser != "transition" or version.startswith("3.8.")
    remedy = f"torch 1.13.1 and fairseq 0.10.2 want Python 3.8: make the environment with it; {_DOCS}"
    yield Finding(right, f"{python} is Python {version}", remedy, needed=False)
    for package, found in report["packages"].items():
        yield _package(parser, python, package, found)
    if all(report["packages"].values()):
        told = f"importing it fails: {report['import']}" if report["import"] else "it can be imported"
        yield Finding(not report["import"], told, f"make the environment anew; {_DOCS}")
    devices = report["devices"]
    told = f"{devices} CUDA devices" if devices else "no CUDA device"
    yield Finding(devices > 0, told, "it works on the processor, some ten times slower", needed=False)
    yield from _files(model, report["files"])


def _files(model: str, files: Mapping[str, Mapping[str, str | None]]) -> Iterator[Finding]:
    """Judge the files; those that the first parse downloads are not needed where there is a network."""
    is_path = "/" in model or model.endswith(".pt")
    for name, file in files.items():
        if name == "machine_config" and not files["checkpoint"]["found"]:
            continue  # it comes with the weights
        found, at = file["found"], file["at"]
        downloaded = name.startswith("bart") or (name == "checkpoint" and not is_path)
        told = found or f"nothing at {at}"
        yield Finding(found is not None, told, _FILES[name], needed=not downloaded)


def _package(parser: ForeignParser, python: str, package: str, found: str | None) -> Finding:
    """Judge one package."""
    pin = _PINS[parser][package]
    if not found:
        wanted = f"{package}=={pin}" if parser == "transition" else f"'{package}>={pin}'"
        if parser == "amrlib" and python == sys.executable:
            wanted = "'pyterrier-mathamr[amrlib]'"
        extra = " -f https://data.pyg.org/whl/torch-1.13.1+cu117.html" if package == "torch-scatter" else ""
        return Finding(False, f"{package} is not installed", f"pip install {wanted}{extra}")
    if parser == "transition" and package in _OTHER_VERSION:
        right = found.partition("+")[0] == pin if package != "numpy" else _numbers(found) <= _numbers(pin)
        return Finding(right, f"{package} {found}", f"{_OTHER_VERSION[package]}: pip install {package}=={pin}")
    if package == "amrlib":
        return Finding(_numbers(found) >= _numbers(pin), f"{package} {found}", f"pip install '{package}>={pin}'")
    return Finding(True, f"{package} {found}")


def _numbers(version: str) -> tuple[int, ...]:
    """Take a version apart, as far as it is numbers."""
    return tuple(int(part) for part in version.partition("+")[0].split(".") if part.isdigit())
