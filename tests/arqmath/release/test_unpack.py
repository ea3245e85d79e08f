"""Archives of the release are unpacked into what the readers read."""

import bz2
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest

from pyterrier_mathamr._common.errors import MissingExtraError
from pyterrier_mathamr.arqmath import ARQMathCollection, ARQMathError, release_files, unpack_release
from pyterrier_mathamr.arqmath.release_files import packed_files

POSTS = b'<posts><row Id="1" PostTypeId="2"/></posts>\n'
ROWS = "id\tpost_id\tthread_id\ttype\tvisual_id\tformula\r\n{}\t1\t1\tanswer\t5\tx\r\n"


def pack_zip(archive: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)


def pack_7z(archive: Path, members: dict[str, bytes]) -> None:
    py7zr = pytest.importorskip("py7zr")
    with py7zr.SevenZipFile(archive, "w") as file:
        for name, content in members.items():
            file.writestr(content, name)


def pack_tar(archive: Path, members: dict[str, bytes], folder: Path) -> None:
    with tarfile.open(archive, "w:gz") as tar:
        for name, content in members.items():
            (folder / "member").write_bytes(content)
            tar.add(folder / "member", name)


def ids(folder: Path) -> list[str]:
    return [post.id for post in ARQMathCollection(folder).posts()]


@pytest.mark.parametrize("kind", ["zip", "7z", "bz2", "xz"])
def test_packed_posts_are_unpacked_next_to_their_archive(tmp_path: Path, kind: str) -> None:
    archive = tmp_path / "Collection" / ("Posts.V1.3." + ("xml." if kind in ("bz2", "xz") else "") + kind)
    archive.parent.mkdir()
    if kind == "zip":
        pack_zip(archive, {"Posts.V1.3.xml": POSTS})
    elif kind == "7z":
        pack_7z(archive, {"Posts.V1.3.xml": POSTS})
    else:
        archive.write_bytes({"bz2": bz2, "xz": lzma}[kind].compress(POSTS))  # type: ignore[attr-defined]
    assert packed_files(tmp_path) == [archive]
    assert unpack_release(tmp_path) == [tmp_path / "Collection/Posts.V1.3.xml"]
    assert ids(tmp_path) == ["1"]
    assert sorted(path.name for path in archive.parent.iterdir()) == sorted([archive.name, "Posts.V1.3.xml"])
    assert unpack_release(tmp_path) == []


@pytest.mark.parametrize("inside", ["", "home/someone/tables/"])
@pytest.mark.parametrize("kind", ["zip", "7z", "tar.gz"])
def test_formula_tables_get_the_folder_in_which_the_readers_look(tmp_path: Path, kind: str, inside: str) -> None:
    members = {f"{inside}{number}.tsv": ROWS.format(number).encode() for number in (1, 2, 10)}
    members["__MACOSX/._1.tsv"] = b"resource fork"
    archive = tmp_path / f"latex_representation_v3.{kind}"
    packed = tmp_path / "elsewhere"
    packed.mkdir()
    if kind == "zip":
        pack_zip(archive, members)
    elif kind == "7z":
        pack_7z(archive, members)
    else:
        pack_tar(archive, members, packed)
    assert unpack_release(tmp_path) == [tmp_path / "latex_representation_v3"]
    assert [row.id for row in ARQMathCollection(tmp_path).formulas()] == ["1", "2", "10"]


@pytest.mark.parametrize("cut", [30])
@pytest.mark.parametrize("kind", ["zip", "7z", "xz"])
def test_a_broken_archive_is_an_error_that_names_it_and_leaves_nothing(tmp_path: Path, kind: str, cut: int) -> None:
    archive = tmp_path / ("Posts.V1.3.xml.xz" if kind == "xz" else f"Posts.V1.3.{kind}")
    if kind == "xz":
        archive.write_bytes(lzma.compress(POSTS))
    else:
        {"zip": pack_zip, "7z": pack_7z}[kind](archive, {"Posts.V1.3.xml": POSTS})
    archive.write_bytes(archive.read_bytes()[:cut])
    with pytest.raises(ARQMathError, match=archive.name):
        unpack_release(tmp_path)
    assert list(tmp_path.iterdir()) == [archive]


def test_the_output_can_be_another_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pack_zip(tmp_path / "in/Posts.V1.3.zip", {"Posts.V1.3.xml": POSTS})
    assert unpack_release(tmp_path / "in", tmp_path / "new/out") == [tmp_path / "new/out/Posts.V1.3.xml"]
    assert ids(tmp_path / "new") == ["1"]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["Posts.V1.3.zip"]
    pack_zip(tmp_path / "slt_representation_v3.zip", {"README": b"moved"})
    with pytest.raises(ARQMathError, match=r"no \.tsv"):
        unpack_release(tmp_path)


def test_an_archive_that_would_write_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    pack_zip(folder / "Posts.V1.3.zip", {"../Posts.V1.3.xml": POSTS})
    with pytest.raises(ARQMathError, match="outside"):
        unpack_release(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


def test_without_py7zr_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Posts.V1.3.7z").write_bytes(b"")

    def missing(module: str, extra: str) -> None:
        raise MissingExtraError(module, extra)

    monkeypatch.setattr(release_files, "require", missing)
    with pytest.raises(MissingExtraError, match=r"pyterrier-mathamr\[archives\]"):
        unpack_release(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["Posts.V1.3.7z"]
