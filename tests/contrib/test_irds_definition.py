"""The definition for ir_datasets, in a copy of the installed one, reads what this package reads."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ir_datasets
import pytest
import yaml

ROOT = Path(__file__).parents[2]
CONTRIB = ROOT / "contrib" / "ir_datasets"
SAMPLE = ROOT / "pyterrier_mathamr" / "data" / "sample"

READ = """
import json, sys, ir_datasets
for name in sys.argv[1:]:
    dataset = ir_datasets.load(name)
    for kind in ("docs", "queries", "qrels"):
        if dataset.has(kind):
            for record in getattr(dataset, f"{kind}_iter")():
                print(json.dumps([name, kind, record._asdict()]))
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("irds")
    shutil.copytree(Path(ir_datasets.__file__).parent, folder / "ir_datasets", ignore=shutil.ignore_patterns("*.pyc"))
    for _ in range(2):  # the second changes nothing
        subprocess.run([sys.executable, str(CONTRIB / "apply.py"), str(folder)], check=True)
    return folder


def place(home: Path, files: Mapping[str, Path]) -> None:
    """Link files where the definition expects them."""
    for name, path in files.items():
        (home / "arqmath" / name).parent.mkdir(parents=True, exist_ok=True)
        (home / "arqmath" / name).symlink_to(path)


def run(checkout: Path, home: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout), "IR_DATASETS_HOME": str(home)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def read(checkout: Path, home: Path, names: list[str]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    done = run(checkout, home, READ, *names)
    assert done.returncode == 0, done.stderr
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for name, kind, record in map(json.loads, done.stdout.splitlines()):
        found.setdefault((name, kind), []).append(record)
    return found


def compare(found: dict[tuple[str, str], list[dict[str, Any]]], ours: Mapping[str, str]) -> None:
    """Compare with our own datasets, the plain text by its words: this package also finds formulas outside of spans."""
    for (name, kind), records in found.items():
        wanted = [each._asdict() for each in getattr(ir_datasets.load(ours[name]), f"{kind}_iter")()]
        assert len(records) == len(wanted), (name, kind)
        same = 0
        for one, other in zip(records, wanted, strict=True):
            same += one.pop("text", "").split() == other.pop("text", "").split()
            assert one == other
        assert same >= 0.94 * len(records), (name, kind, same)


def test_the_definition_reads_the_sample_as_this_package_does(checkout: Path, tmp_path: Path) -> None:
    topics, qrels = SAMPLE / "topics", SAMPLE / "qrels"
    files = {
        "Posts.V1.3.xml": SAMPLE / "Posts.V1.3.xml",
        "latex_representation_v3": SAMPLE / "latex_representation_v3",
        "2022/task1/Topics_Task1_2022_V0.1.xml": topics / "Topics_Task1_sample.xml",
        "2022/task2/Topics_Task2_2022_V0.1.xml": topics / "Topics_Task2_sample.xml",
        "2022/task1/qrel_task1_2022_official.tsv": qrels / "qrels.arqmath-sample-task1.txt",
        "2022/task2/qrels.arqmath-2022-task2.formula_id.txt": qrels / "qrels.arqmath-sample-task2.txt",
    }
    place(tmp_path, files)
    ours = {
        "arqmath": "arqmath/sample",
        "arqmath/questions": "arqmath/sample/questions",
        "arqmath/formulas": "arqmath/sample/formulas",
        "arqmath/2022/task1": "arqmath/sample/task1",
        "arqmath/2022/task2": "arqmath/sample/task2",
    }
    found = read(checkout, tmp_path, list(ours))
    assert len(found) == 3 + 3 + 3
    compare(found, ours)


@pytest.mark.filterwarnings("ignore:.*codes? 5:pyterrier_mathamr._common.errors.MathAMRWarning")
def test_the_definition_reads_a_part_of_the_release_as_this_package_does(
    checkout: Path, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared_data / "arqmath-mini"
    files = {name: folder / name for name in ("Posts.V1.3.xml", "latex_representation_v3")}
    for name, topics in (
        ("2020/task1/Topics_V2.0.xml", "Topics_Task1_2020.xml"),
        ("2020/task2/Topics_V1.1.xml", "Topics_Task2_2020.xml"),
        ("2022/task1/Topics_Task1_2022_V0.1.xml", "Topics_Task1_2022.xml"),
        ("2022/task2/Topics_Task2_2022_V0.1.xml", "Topics_Task2_2022.xml"),
    ):
        files[name] = folder / "topics" / topics
    for name, qrels in (
        ("2020/task1/qrel_official_task1", "2020-task1.mini"),
        ("2020/task2/qrel_task2.tsv", "2020-task2.formula_id.mini"),
        ("2020/task2/visual/qrel_task2_official_2020_visual_id.tsv", "2020-task2.visual_id.v3.mini"),
        ("2022/task1/qrel_task1_2022_official.tsv", "2022-task1.mini"),
        ("2022/task2/qrels.arqmath-2022-task2.formula_id.txt", "2022-task2.formula_id.mini"),
        ("2022/task2/visual/qrel_task2_2022_official.tsv", "2022-task2.visual_id.v3.mini"),
        ("2022/task3/qrel_task3_2022_official.tsv", "2022-task3"),
    ):
        files[name] = folder / "qrels" / f"qrels.arqmath-{qrels}.txt"
    place(tmp_path, files)
    years = [f"arqmath/{year}/{task}" for year in (2020, 2022) for task in ("task1", "task2", "task2/visual")]
    names = ["arqmath", "arqmath/formulas", *years, "arqmath/2022/task3"]
    monkeypatch.setenv("ARQMATH_HOME", str(folder))
    compare(read(checkout, tmp_path, names), {name: name for name in names})


def test_bad_bytes_and_a_bare_less_than_cost_no_document_and_no_query(checkout: Path, tmp_path: Path) -> None:
    posts = """<posts>
    <row Id="1" PostTypeId="1" Title="A&#x1;B" Body="&lt;p&gt;Is $x$ &lt;span class=&quot;math-container&quot; id=&quot;7&quot;&gt;a&amp;lt;b&lt;/span&gt;?" />
    <row Id="2" PostTypeId="4" Body="a wiki" />
    <row Id="3" PostTypeId="2" ParentId="1" Body="&lt;p&gt;Yes.&lt;/p&gt;" Score="-2" CreationDate="2012-01-01" />
    </posts>"""  # noqa: E501
    topics = """<?xml version="1.0" ?><Topics><Topic number="B.1"><Formula_Id>q_1</Formula_Id><Latex>a<b</Latex>
    <Title>T</Title><Question>&lt;p&gt;&lt;span class="math-container" id="q_1"&gt;$a<b$&lt;/span&gt;s
    &lt;/p&gt;</Question><Tags>&lt;x-y&gt;&lt;z&gt;</Tags></Topic></Topics>"""
    (tmp_path / "posts").write_text(posts)
    (tmp_path / "topics").write_text(topics)
    (tmp_path / "qrels").write_text("B.1\t0\t7\t2\nB.1\t0\t8\t5\n")
    files = {
        "Posts.V1.3.xml": tmp_path / "posts",
        "2022/task2/Topics_Task2_2022_V0.1.xml": tmp_path / "topics",
        "2022/task2/visual/qrel_task2_2022_official.tsv": tmp_path / "qrels",
    }
    place(tmp_path, files)
    found = read(checkout, tmp_path, ["arqmath/2022/task2/visual"])
    question, answer = found["arqmath/2022/task2/visual", "docs"]
    assert question["doc_id"] == "1"
    assert question["text"].splitlines()[1] == "Is $x$ $a<b$?"
    assert (answer["doc_id"], answer["parent_id"], answer["score"], answer["date"]) == ("3", "1", -2, "2012-01-01")
    (query,) = found["arqmath/2022/task2/visual", "queries"]
    assert (query["query_id"], query["latex"], query["topic_id"], query["tags"]) == ("B.1", "a<b", "A.1", "x-y z")
    assert query["text"] == "T\n$a<b$ s"
    assert [qrel["doc_id"] for qrel in found["arqmath/2022/task2/visual", "qrels"]] == ["7"]


def test_a_missing_file_is_an_error_that_names_its_source_and_place(checkout: Path, tmp_path: Path) -> None:
    done = run(checkout, tmp_path, "import ir_datasets; next(iter(ir_datasets.load('arqmath').docs_iter()))")
    assert done.returncode != 0
    assert "drive.google.com" in done.stderr
    assert f"here: {tmp_path}/arqmath/Posts.V1.3.xml" in done.stderr


def test_each_dataset_is_documented_and_counted_and_nothing_else_of_the_checkout_changes(checkout: Path) -> None:
    before = Path(ir_datasets.__file__).parent
    for name in ("etc/downloads.json", "etc/metadata.json"):
        old, new = ((folder / name).read_text() for folder in (before, checkout / "ir_datasets"))
        assert new.endswith(old.lstrip().removeprefix("{"))
        ours = json.loads((CONTRIB / "overlay" / "ir_datasets" / name).read_text())
        assert json.loads(new) == {**json.loads(old), **ours}
    imports = (checkout / "ir_datasets/datasets/__init__.py").read_text()
    assert imports == (before / "datasets" / "__init__.py").read_text() + "from . import arqmath\n"
    documented = yaml.safe_load((checkout / "ir_datasets/docs/arqmath.yaml").read_text())
    counted = json.loads((CONTRIB / "overlay/ir_datasets/etc/metadata.json").read_text())
    done = run(checkout, checkout, "import ir_datasets; print(*[n for n in ir_datasets.registry if 'arqmath' in n])")
    names = done.stdout.split()
    assert len(names) == 4 + 3 * 3 + 1
    assert sorted(names) == sorted(counted)
    assert sorted(names) == sorted("arqmath" if name == "_" else f"arqmath/{name}" for name in documented)
    assert set(names) < set(ir_datasets.registry)  # ours has the same names


def test_apply_refuses_a_folder_that_is_not_a_checkout(tmp_path: Path) -> None:
    command = [sys.executable, str(CONTRIB / "apply.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "usage" in done.stderr
