"""What we publish on the hub is built of the sample and described; nothing is uploaded unless asked for."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pyterrier as pt
import pytest
import yaml

SCRIPT = Path(__file__).parents[2] / "contrib" / "hub" / "publish.py"


@pytest.fixture
def publish() -> ModuleType:
    found = importlib.util.spec_from_file_location("publish", SCRIPT)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_sample_is_built_described_and_uploaded_when_asked_for(
    publish: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploaded: list[tuple[str, str]] = []
    monkeypatch.setattr(publish, "upload", lambda folder, repo, kind: uploaded.append((folder.name, repo)))
    options = [str(tmp_path), "--model", "mathamr-plus-mini"]
    publish.main(options)
    assert uploaded == []
    for kind, artifact in (("engine", "search_engine"), ("index", "multi_vector_index")):
        folder = tmp_path / f"arqmath-sample-{kind}"
        card = (folder / "README.md").read_text("utf-8")
        front = yaml.safe_load(card.split("---")[1])
        assert front["license"] == "cc0-1.0"
        assert f"pyterrier-artifact.{artifact}.mathamr" in front["tags"]
        assert f"from_hf('ORGANIZATION/arqmath-sample-{kind}')" in card
        assert "| BM25, tuned for mathematics | 0." in card
        assert "python contrib/hub/publish.py OUTPUT --model mathamr-plus-mini" in card
        assert str(tmp_path) not in card
        assert sorted(file.name for file in folder.iterdir()) == [
            "README.md",
            "artifact.tar.lz4",
            "artifact.tar.lz4.json",
        ]
    assert len(pt.Artifact.load(str(tmp_path / "arqmath-sample.mathamr"))) == 222
    publish.main([*options, "--upload", "someone"])  # what is built is not built again
    assert uploaded == [(f"arqmath-sample-{kind}", f"someone/arqmath-sample-{kind}") for kind in ("engine", "index")]
    assert "from_hf('someone/arqmath-sample-index')" in (tmp_path / "arqmath-sample-index/README.md").read_text("utf-8")


def test_posts_of_the_release_are_attributed_and_shared_alike(
    publish: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyterrier_mathamr.register_arqmath", lambda folder: None)
    collection = publish.of_arqmath(tmp_path, "mini")
    assert collection.license == "cc-by-sa-4.0"
    assert "by its users" in collection.origin
    assert "https://math.stackexchange.com/a/DOCNO" in collection.origin
