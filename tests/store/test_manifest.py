"""The manifest of an artifact: nothing in it is trusted, and every change of it is noticed."""

import json
import pickle

import pytest

from pyterrier_mathamr.store import (
    META,
    DamagedError,
    FormatError,
    NotBuiltError,
    OtherArtifactError,
    StoreError,
    UnfinishedJobError,
    UnknownIdError,
    detail,
    signed,
)
from pyterrier_mathamr.store.manifest import read_manifest


def changed(path, change) -> None:
    """Change the manifest and sign it again, as an attacker would."""
    content = json.loads((path / META).read_text())
    content.pop("checksum")
    change(content)
    (path / META).write_bytes(signed(content))


@pytest.mark.parametrize(
    "change",
    [
        lambda meta: meta["parts"][0].update(name="../elsewhere"),
        lambda meta: meta["parts"][0].update(name="part-000000/../../x"),
        lambda meta: meta["parts"][0]["files"].update({"/etc/passwd": [1, "0" * 64]}),
        lambda meta: meta["parts"][0]["files"].pop("ids.npids"),
        lambda meta: meta["parts"][0].update(count=10**400),
        lambda meta: meta["parts"][0].update(count=-1),
        lambda meta: meta["parts"][0].update(count=1.5),
        lambda meta: meta["parts"][0].update(count=True),
        lambda meta: meta["parts"][0].update(count=1),
        lambda meta: meta["parts"][0].update(details=None),
        lambda meta: meta["parts"][0].update(deleted={"name": "../x", "count": 1, "sha256": "0" * 64}),
        lambda meta: meta["parts"][0].update(deleted={"name": "deleted-000009.bin", "count": 1, "sha256": "0" * 64}),
        lambda meta: meta["parts"].append(meta["parts"][0]),
        lambda meta: meta.update(parts={"a": 1}),
        lambda meta: meta.update(parts=None),
        lambda meta: meta.update(next="many"),
        lambda meta: meta.update(next=0),  # a writer would take the number of a part, and remove it
        lambda meta: meta.pop("details"),
    ],
)
def test_a_manifest_that_was_made_up_is_damage(toy, path, change) -> None:
    toy.build(path, range(3))
    changed(path, change)
    with pytest.raises(DamagedError):
        toy.read(path)
    assert any(toy.Toy(path).faults())


def test_each_byte_of_the_manifest_is_watched(toy, path) -> None:
    toy.build(path, range(2))
    data = (path / META).read_bytes()
    for place in range(len(data)):
        for other in (data[place] ^ 1, *b" \t") if place % 8 == 0 else (data[place] ^ 1,):
            if other != data[place]:
                (path / META).write_bytes(data[:place] + bytes([other]) + data[place + 1 :])
                with pytest.raises(StoreError):
                    read_manifest(path, toy.Toy.KIND)


def test_another_format_is_refused_with_the_call_that_rebuilds(toy, path) -> None:
    toy.build(path, range(3))
    changed(path, lambda meta: meta.update(format_version=2))
    with pytest.raises(FormatError, match=r"has format 2, this release reads 3\. Rebuild it: build\(path\)"):
        toy.read(path)
    toy.build(path, range(2), "overwrite")
    assert toy.read(path)[1] == ["d0", "d1"]


def test_nothing_is_built_at_an_empty_path_and_a_foreign_artifact_is_not_touched(toy, path) -> None:
    with pytest.raises(NotBuiltError, match=r"no finished toy\.mathamr"):
        toy.read(path)
    path.mkdir()
    with pytest.raises(NotBuiltError):
        toy.read(path)
    (path / META).write_text(json.dumps({"type": "dense_index", "format": "flex"}))
    for mode in ("create", "overwrite", "append"):
        with pytest.raises(OtherArtifactError, match=r"dense_index\.flex"):
            toy.build(path, range(3), mode)


def test_details_have_the_type_that_they_should(path) -> None:
    assert detail({"n": 3}, "n", int, path) == 3
    for details in ({}, {"n": True}, {"n": 3.0}, {"n": None}):
        with pytest.raises(DamagedError, match="n is"):
            detail(details, "n", int, path)


def test_errors_survive_a_worker_process(path) -> None:
    for error in (
        DamagedError(path, "why"),
        UnknownIdError(path, ["a"] * 9),
        UnfinishedJobError(path, {"formulas": ("both", "opt")}),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.path) == (type(error), str(error), path)
    assert "9 ids are not in it: 'a', 'a', 'a', 'a', 'a', …" in str(UnknownIdError(path, ["a"] * 9))
    assert "formulas: both, not opt" in str(UnfinishedJobError(path, {"formulas": ("both", "opt")}))
    assert isinstance(UnknownIdError(path, ["a"]), KeyError)
