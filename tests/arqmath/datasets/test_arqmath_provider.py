"""The datasets in a fresh process, with the network off."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyterrier_mathamr.arqmath import ARQMathProvider
from pyterrier_mathamr.arqmath.datasets.definitions import DATASETS

OFFLINE = """
import socket
def refuse(*args, **kwargs):
    raise OSError("the network is off")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
"""


def run(code: str, tmp_path: Path, **variables: str) -> str:
    environment = {**os.environ, "IR_DATASETS_HOME": str(tmp_path / "irds"), **variables}
    command = [sys.executable, "-c", OFFLINE + code]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_a_fresh_process_that_imports_only_pyterrier_has_the_datasets_under_each_name(
    release: Path, tmp_path: Path
) -> None:
    code = """
import pyterrier as pt
print(pt.get_dataset("arqmath:2022/task1").get_topics("text").qid.tolist())
for name in ("irds:arqmath/2022/task1", "irds:arqmath", "arqmath:posts"):
    print(len(pt.get_dataset(name).get_corpus_iter(verbose=False)))
print(*sorted(name for name in pt.datasets.list_datasets(en_only=False).dataset if "arqmath" in name))
"""
    topics, *lengths, names = run(code, tmp_path, ARQMATH_HOME=str(release)).splitlines()
    assert (topics, lengths) == ("['A.301', 'A.302']", ["3", "5", "5"])
    assert names.split() == sorted(f"irds:{name}" for name in DATASETS), "each once"
    with pytest.raises(KeyError, match=r"2023/task1 is unknown; there are posts, questions, .*2020/task1, "):
        ARQMathProvider().get_dataset("2023/task1")


def test_importing_the_layer_before_or_after_ir_datasets_registers_and_loads_nothing_heavy(tmp_path: Path) -> None:
    code = """
import sys
import pyterrier_mathamr.arqmath
print([name for name in ("ir_datasets", "pandas", "lxml", "torch", "pyterrier", "ir_measures") if name in sys.modules])
import ir_datasets
print(ir_datasets.load('arqmath/2022/task1').docs_lang(), ir_datasets.load('vaswani').docs_count())
"""
    assert run(code, tmp_path) == "[]\nen 11429"
    code = """
import ir_datasets
import pyterrier_mathamr.arqmath
print(ir_datasets.load('arqmath/2022/task1').docs_lang())
"""
    assert run(code, tmp_path) == "en"


def test_registering_reads_and_writes_nothing(release: Path, tmp_path: Path) -> None:
    code = f"""
import sys
touched = []
def note(event, args):
    if event in ("open", "os.listdir", "os.scandir", "os.mkdir") and {str(release)!r} in str(args[0]):
        touched.append(event)
sys.addaudithook(note)
from pyterrier_mathamr.arqmath import register_arqmath
collection = register_arqmath({str(release)!r})
print(list(touched), len(list(collection.posts())), "open" in touched)
"""
    assert run(code, tmp_path) == "[] 5 True"
    assert not list((tmp_path / "irds").glob("*arqmath*"))
