"""Models joined into one: its rows are those of the parts side by side, in memory, on disk and in a pipeline."""

import json
import pickle
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.cli.verify import verify
from pyterrier_mathamr.index import MathAMRIndex
from pyterrier_mathamr.model import (
    Encoder,
    JoinedMathAMR,
    MathAMR,
    ModelFileError,
    ScoreWeights,
    Trainer,
    fit_score_weights,
    vectors_by,
)
from pyterrier_mathamr.model.joined.files import joined_faults


def _model(config, vocabulary, seed: int) -> MathAMR:
    torch.manual_seed(seed)
    return MathAMR(config, vocabulary, Encoder(config, len(vocabulary.nodes), len(vocabulary.relations)).state_dict())


@pytest.fixture
def parts(small, vocabulary) -> list[MathAMR]:
    return [_model(small, vocabulary, 1), _model(small.replace(projection=12, layers=1), vocabulary, 2)]


@pytest.fixture
def joined(parts) -> JoinedMathAMR:
    return JoinedMathAMR(parts, [1, 3])


@pytest.fixture
def folder(joined, tmp_path):
    joined.save(tmp_path / "joined")
    return tmp_path / "joined"


def test_a_product_of_rows_is_the_sum_of_the_parts_by_their_shares(joined, parts, graphs) -> None:
    posts = list(graphs.values())[:5]
    rows = [np.concatenate(model.encode(posts)) for model in (joined, *parts)]
    assert rows[0].shape[1] == joined.config.projection == 8 + 12
    products = [of @ of.T for of in rows]
    np.testing.assert_allclose(products[0], 0.25 * products[1] + 0.75 * products[2], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(rows[0], axis=1), 1, atol=1e-6)


def test_equal_shares_are_the_default(parts) -> None:
    assert JoinedMathAMR(parts).shares == (0.5, 0.5)


def test_a_saved_copy_is_the_same_model_of_the_same_vectors(joined, folder, graphs) -> None:
    opened = MathAMR.from_pretrained(folder)
    assert isinstance(opened, JoinedMathAMR)
    assert opened == joined
    assert (opened.config, opened.shares) == (joined.config, joined.shares)
    assert vectors_by(opened).partition("@")[2] == vectors_by(joined).partition("@")[2]
    posts = list(graphs.values())[:4]
    for mine, other in zip(joined.encode(posts), opened.encode(posts), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert pickle.loads(pickle.dumps(opened)) == opened
    assert repr(opened) == f"MathAMR.from_pretrained({str(folder)!r})"


def test_in_half_precision_it_names_its_parts_as_they_are_saved(joined, tmp_path) -> None:
    joined.save(tmp_path / "half", dtype="float16")
    opened = MathAMR.from_pretrained(tmp_path / "half")
    opened.verify()
    opened.save(tmp_path / "copy")
    assert MathAMR.from_pretrained(tmp_path / "copy") == opened


def test_the_identity_changes_with_shares_parts_and_weights_and_that_of_vectors_not_with_weights(joined, parts) -> None:
    others = [JoinedMathAMR(parts, [1, 2]), JoinedMathAMR(parts[::-1], [3, 1])]
    weighted = joined.with_score_weights(ScoreWeights(0.5, 1.0, 2.0, 3.0))
    assert len({model.identity for model in (joined, weighted, *others)}) == 4
    assert vectors_by(weighted) == vectors_by(joined)
    assert vectors_by(joined) not in {vectors_by(model) for model in others}


def test_weights_are_the_mean_of_the_parts_until_they_are_fitted(parts, pairs, graphs) -> None:
    weighted = [part.with_score_weights(ScoreWeights(1.0, 2.0, 4.0, 8.0)) for part in parts]
    assert JoinedMathAMR(weighted, [1, 3]).score_weights == ScoreWeights(1.0, 2.0, 4.0, 8.0)
    mixed = JoinedMathAMR([weighted[0], parts[1]], [1, 3])
    assert mixed.score_weights == ScoreWeights(1.0, 1.25, 1.75, 2.0)  # plain MaxSim is 1, 1, 1, 0
    assert JoinedMathAMR(parts).score_weights is None
    fitted = fit_score_weights(mixed, pairs, graphs)
    assert isinstance(fitted, JoinedMathAMR)
    assert fitted.score_weights not in (None, mixed.score_weights)


def test_an_index_of_its_rows_ranks_as_exact_maxsim_does(joined, graphs, tmp_path) -> None:
    model = joined.with_score_weights(ScoreWeights(0.5, 1.0, 2.0, 3.0))
    documents = pd.DataFrame([{"docno": name, "graph": graphs[name]} for name in graphs if name.startswith("a")])
    index = MathAMRIndex(tmp_path / "index")
    (model.doc_encoder() >> index.indexer()).index(documents.to_dict("records"))
    asked = pd.DataFrame([{"qid": "q0", "query_graph": graphs["q0"]}])
    found = (model.query_encoder() >> index.colbert(num_results=24))(asked)
    query, *rows = model.encode([graphs["q0"], *documents["graph"]])
    weights = model.score_weights.of_rows(len(query), graphs["q0"].n_formulas)
    wanted = {
        docno: float(weights @ (query @ of.T).max(1) + 3.0 * (query[-1] @ of[-1]))
        for docno, of in zip(documents["docno"], rows, strict=True)
    }
    assert found["docno"].tolist() == sorted(wanted, key=lambda docno: (-wanted[docno], docno))
    np.testing.assert_allclose(found["score"], [wanted[docno] for docno in found["docno"]], rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda parts: JoinedMathAMR(parts[:1]), "two or more"),
        (lambda parts: JoinedMathAMR([JoinedMathAMR(parts), parts[0]]), "none of them joined"),
        (lambda parts: JoinedMathAMR(parts, [1]), "2 numbers"),
        (lambda parts: JoinedMathAMR(parts, [1, 0]), "above 0"),
        (lambda parts: JoinedMathAMR(parts, [1, float("nan")]), "above 0"),
    ],
)
def test_what_cannot_be_joined_is_refused(parts, change, named) -> None:
    with pytest.raises(ConfigError, match=named):
        change(parts)


def test_models_with_other_rows_or_other_means_are_refused(parts, small, vocabulary) -> None:
    with pytest.raises(ConfigError, match="the same formulas"):
        JoinedMathAMR([parts[0], _model(small.replace(formulas="opt"), vocabulary, 3)])
    with pytest.raises(ConfigError, match="kind_means"):
        JoinedMathAMR([parts[0], _model(small.replace(kind_means=True), vocabulary, 3)])


def test_it_has_neither_a_vocabulary_nor_a_network_and_cannot_be_trained(joined, pairs, graphs, small) -> None:
    for use in (lambda: joined.vocabulary, joined.weights, joined.encoder, lambda: joined.encode_tensors([])):
        with pytest.raises(ConfigError, match="one of its parts"):
            use()
    with pytest.raises(ConfigError, match="one of its parts"):
        Trainer(small).fit(pairs, graphs, start=joined, verbose=False)


def test_a_folder_that_exists_is_never_written_over(joined, folder) -> None:
    with pytest.raises(ConfigError, match="does not exist yet"):
        joined.save(folder)


def test_a_bundled_part_is_named_in_place_of_copied(parts, tmp_path, monkeypatch) -> None:
    parts[0].save(tmp_path / "bundled" / "ours", dtype="float16")
    for module in ("saving.places", "joined.model", "joined.files"):
        monkeypatch.setattr(f"pyterrier_mathamr.model.{module}.BUNDLED", tmp_path / "bundled")
    model = JoinedMathAMR([MathAMR.from_pretrained("ours"), parts[1]])
    model.save(tmp_path / "model")
    model.save(tmp_path / "other", dtype="float32")
    assert [(tmp_path / name / "part-0").exists() for name in ("model", "other")] == [False, True]
    assert MathAMR.from_pretrained(tmp_path / "model") == model
    assert not list(joined_faults(tmp_path / "model"))
    shutil.rmtree(tmp_path / "bundled" / "ours")
    with pytest.raises(ModelFileError, match="no bundled models"):
        MathAMR.from_pretrained(tmp_path / "model")


@pytest.mark.parametrize("name", ["config.json", "part-0/config.json", "part-1/weights.safetensors"])
def test_every_changed_file_is_found(folder, name) -> None:
    assert CliRunner().invoke(verify, [str(folder)]).exit_code == 0
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    assert [fault.path for fault in joined_faults(folder)][:1] == [folder / name]
    assert CliRunner().invoke(verify, [str(folder)]).exit_code == 1


def test_a_part_of_another_model_is_refused(folder, joined, small, vocabulary) -> None:
    shutil.rmtree(folder / "part-1")
    _model(small, vocabulary, 9).save(folder / "part-1")
    with pytest.raises(ModelFileError, match=r"part-1.*another model"):
        MathAMR.from_pretrained(folder)
    assert any("another model" in str(fault) for fault in joined_faults(folder))


def test_a_part_that_is_missing_is_named(folder) -> None:
    shutil.rmtree(folder / "part-0")
    with pytest.raises(ModelFileError, match="part-0"):
        MathAMR.from_pretrained(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"parts": []},
        {"parts": [{"share": 0.5, "identity": "a", "bundled": None}, {"share": 0.6, "identity": "b", "bundled": None}]},
        {
            "parts": [
                {"share": 1.5, "identity": "a", "bundled": None},
                {"share": -0.5, "identity": "b", "bundled": None},
            ]
        },
        {"parts": 7},
        {"parts": 2 * [{"share": 0.5, "identity": "a", "bundled": "../../models"}]},
        {"score": {"unknown": 1}},
        {"score": {"kind_weights": "many"}},
    ],
)
def test_a_description_that_cannot_be_is_refused(folder, change) -> None:
    from pyterrier_mathamr.store import signed

    content = json.loads((folder / "config.json").read_text())
    content.pop("checksum")
    (folder / "config.json").write_bytes(signed({**content, **change}))
    with pytest.raises(ModelFileError, match="description of a joined model"):
        MathAMR.from_pretrained(folder)
    assert list(joined_faults(folder))
