"""The datasets in a fresh process, with the network off."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

OFFLINE = """
import socket
def refuse(*args, **kwargs):
    raise OSError("the network is off")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
"""


def run(code: str, tmp_path: Path, **variables: str) -> str:
    environment = {**os.environ, "IR_DATASETS_HOME": str(tmp_path / "irds"), **variables}
    result = subprocess.run(
        [sys.executable, "-c", OFFLINE + code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_the_provider_works_in_a_fresh_process_that_imports_only_pyterrier(release: Path, tmp_path: Path) -> None:
    code = """
import pyterrier as pt
print(pt.get_dataset("arqmath:2022/task1").get_topics("text").qid.tolist())
"""
    assert run(code, tmp_path, ARQMATH_HOME=str(release)) == "['A.301', 'A.302']"


@pytest.mark.parametrize("order", ["room, ir_datasets", "ir_datasets, room"])
def test_importing_the_room_registers_whenever_ir_datasets_is_imported(tmp_path: Path, order: str) -> None:
    lines = {"room": "import pyterrier_mathamr.arqmath", "ir_datasets": "import ir_datasets"}
    code = "\n".join(lines[word] for word in order.split(", "))
    code += "\nprint(ir_datasets.load('arqmath/2022/task1').docs_lang(), ir_datasets.load('vaswani').docs_count())"
    assert run(code, tmp_path) == "en 11429"


def test_importing_the_room_loads_nothing_heavy(tmp_path: Path) -> None:
    code = """
import sys
import pyterrier_mathamr.arqmath
print([name for name in ("ir_datasets", "pandas", "lxml", "torch", "pyterrier", "ir_measures") if name in sys.modules])
"""
    assert run(code, tmp_path) == "[]"


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


def test_an_unknown_name_is_a_key_error_that_names_those_there_are() -> None:
    from pyterrier_mathamr.arqmath import ARQMathProvider

    with pytest.raises(KeyError, match=r"2023/task1 is unknown; there are posts, questions, .*2020/task1, "):
        ARQMathProvider().get_dataset("2023/task1")


def test_list_datasets_shows_each_once(tmp_path: Path) -> None:
    code = """
import pyterrier as pt
from pyterrier_mathamr.arqmath.datasets.definitions import DATASETS
names = [name for name in pt.datasets.list_datasets(en_only=False).dataset if "arqmath" in name]
print(sorted(names) == sorted(f"irds:{name}" for name in DATASETS), len(names))
"""
    assert run(code, tmp_path) == "True 20"


@pytest.mark.parametrize("name", ["irds:arqmath/2022/task1", "irds:arqmath", "arqmath:posts"])
def test_a_fresh_process_that_imports_only_pyterrier_has_the_datasets(name: str, release: Path, tmp_path: Path) -> None:
    code = f"""
import pyterrier as pt
print(len(pt.get_dataset({name!r}).get_corpus_iter(verbose=False)))
"""
    assert run(code, tmp_path, ARQMATH_HOME=str(release)) == ("3" if "task1" in name else "5")
