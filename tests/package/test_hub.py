"""Models, indexes and engines on the hub, by the real client and a hub on this machine."""

import urllib.request
from collections.abc import Iterator

import pandas as pd
import pytest
import yaml
from hub_stand_in import Hub

import pyterrier_mathamr as mathamr
from pyterrier_mathamr._common.errors import MathAMRError, MissingExtraError
from pyterrier_mathamr.model import ModelNotFoundError

POSTS = [
    {"id": "square", "text": "Show that $x^2 = 1$ has two solutions."},
    {"id": "sum", "text": "Why is $1 + 1 = 2$?"},
]


@pytest.fixture
def hub(monkeypatch, tmp_path, socket_enabled) -> Iterator[Hub]:
    pytest.importorskip("huggingface_hub")
    from huggingface_hub import constants, hf_api

    server = Hub()
    monkeypatch.setattr(constants, "ENDPOINT", server.address)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", server.address + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(hf_api.api, "endpoint", server.address)
    monkeypatch.setenv("HF_TOKEN", "hf_token")
    monkeypatch.setenv("PYTERRIER_HOME", str(tmp_path / "pyterrier"))
    opened = urllib.request.urlopen

    def redirected(request: urllib.request.Request, *args: object, **options: object) -> object:
        request.full_url = request.full_url.replace("https://huggingface.co", server.address)
        return opened(request, *args, **options)

    monkeypatch.setattr(urllib.request, "urlopen", redirected)  # PyTerrier fetches artifacts by address
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def engine(tmp_path_factory) -> mathamr.SearchEngine:
    path = tmp_path_factory.mktemp("engines") / "my.engine"
    return mathamr.SearchEngine.build(POSTS, path, model="mathamr-plus-mini", verbose=False)


def front_of(card: str) -> dict:
    return yaml.safe_load(card.split("---")[1])


def test_a_model_comes_back_as_the_same_model_with_a_card_of_license_measures_and_code(hub) -> None:
    model = mathamr.MathAMR.from_pretrained("mathamr-plus-mini")
    measures = pd.DataFrame({"name": ["BM25", "a|b"], "nDCG": [0.76312, 0.5]})
    model.to_hf("someone/mini", license="cc-by-sa-4.0", measures=measures, reproduction="mathamr train …")
    card = hub.repos["models/someone/mini"]["main"]["README.md"].decode()
    assert front_of(card)["license"] == "cc-by-sa-4.0"
    assert "| BM25 | 0.7631 |" in card
    assert r"| a\|b | 0.5 |" in card
    assert "mathamr train …" in card
    assert "model = mathamr.MathAMR.from_hf('someone/mini')" in card
    assert mathamr.MathAMR.from_hf("someone/mini") == model


def test_an_engine_on_a_branch_comes_back_with_its_posts_and_a_card(hub, engine) -> None:
    engine.to_hf("someone/engine", branch="v1", pretty_name="Two posts")
    card = hub.repos["datasets/someone/engine"]["v1"]["README.md"].decode()
    assert "No license is given" in card
    assert front_of(card)["tags"][-1] == "pyterrier-artifact.search_engine.mathamr"
    found = mathamr.SearchEngine.from_hf("someone/engine@v1")
    assert found.docnos() == ["square", "sum"]
    assert found.search("$x^2 = 1$", weak=True)["docno"].iloc[0] == "square"


def test_an_index_loads_by_the_code_of_its_card(hub, engine) -> None:
    engine.snapshot().indexes.vectors.to_hf("someone/index", license="cc0-1.0")
    card = hub.repos["datasets/someone/index"]["main"]["README.md"].decode()
    scope: dict = {}
    exec(card.split("```python\n")[1].split("```")[0], scope)
    assert scope["pipeline"].search("$x^2 = 1$")["docno"].iloc[0] == "square"
    with pytest.raises(MathAMRError, match=r"hf:someone/index is a MathAMRIndex, not a SearchEngine"):
        mathamr.SearchEngine.from_hf("someone/index")


def test_a_missing_repository_and_a_refused_upload_are_named_errors(hub, engine) -> None:
    with pytest.raises(MathAMRError, match=r"hf:some/one cannot be fetched: .*\. Check the name"):
        mathamr.SearchEngine.from_hf("some/one")
    with pytest.raises(ModelNotFoundError, match=r"hf:some/one': it cannot be fetched"):
        mathamr.MathAMR.from_hf("some/one")
    with pytest.raises(MathAMRError, match=r"hf:no such name! cannot be written"):
        engine.to_hf("no such name!")


def test_without_the_hub_library_the_error_names_the_extra(engine, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"pyterrier-mathamr\[hub\]"):
        engine.to_hf("someone/engine")
    with pytest.raises(MissingExtraError, match=r"pyterrier-mathamr\[hub\]"):
        mathamr.MathAMR.from_pretrained("mathamr-plus-mini").to_hf("someone/mini")
