"""An artifact is recognized by its manifest: no artifact reads or replaces anything else."""

import gc
import json
from contextlib import suppress

import pytest
from artifact_modules import NAMES, Artifact, load
from odd_json import changed_objects

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr.store import META, OtherArtifactError, StoreError, WriteError, signed


@pytest.fixture(params=NAMES)
def artifact(request) -> Artifact:
    """How one artifact is built and read."""
    return load(request.param)


def test_a_file_a_folder_of_other_things_and_another_artifact_are_not_touched(artifact, toy, path) -> None:
    path.mkdir()
    (path / "thesis.tex").write_text("chapter 1")
    for mode in ("create", "overwrite"):
        with pytest.raises(OtherArtifactError, match=r"no pt_meta\.json"):
            artifact.build(path, range(2), mode)
        with pytest.raises(OtherArtifactError, match="is a file"):
            artifact.build(path / "thesis.tex", range(2), mode)
    with pytest.raises(WriteError):
        artifact.build(path / "thesis.tex" / "below" / "it", range(2))
    assert [entry.name for entry in path.iterdir()] == ["thesis.tex"]
    assert (path / "thesis.tex").read_text() == "chapter 1"
    if artifact is toy:
        return
    other = path.with_name("other")
    toy.build(other, range(2))
    with pytest.raises(OtherArtifactError, match=r"holds a toy\.mathamr, not a "):
        artifact.build(other, range(2), "overwrite")
    with pytest.raises(OtherArtifactError):
        artifact.read(other)
    assert toy.read(other)[1] == ["d0", "d1"]


def test_a_manifest_that_is_wrong_is_a_named_error_and_one_that_is_signed_is_read_or_such_an_error(
    artifact, path
) -> None:
    artifact.build(path, range(2))
    with suppress(MathAMRError):  # of a kind whose rows are not deleted
        artifact.open(path).delete(["d1"])
    data, siblings = (path / META).read_bytes(), sorted(path.parent.iterdir())
    gc.collect()  # garbage of earlier tests must not be finalized where the reader of JSON has used up the stack
    for text in ("", "{}", "[]", "null", "[" * 100_000, '{"type": "toy", "format": "mathamr"}', "\0"):
        (path / META).write_text(text)
        with pytest.raises(StoreError):
            artifact.read(path)
        with pytest.raises(StoreError):
            artifact.open(path).verify()
    content = {name: value for name, value in json.loads(data).items() if name != "checksum"}
    assert signed(content) == data
    for changed in changed_objects(content, float("inf"), odd=2):
        (path / META).write_bytes(signed(changed).replace(b"Infinity", b"1e400"))
        with suppress(MathAMRError):
            artifact.read(path)
        with suppress(MathAMRError):
            artifact.open(path).verify()
    assert sorted(path.parent.iterdir()) == siblings
    (path / META).write_bytes(data)
    artifact.read(path)
