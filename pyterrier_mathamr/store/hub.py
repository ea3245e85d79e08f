"""Sharing on the Hugging Face hub: what a card contains, and how a folder is uploaded.

::

    model.to_hf("someone/model")     the model's files and README.md, as a model
    index.to_hf("someone/index")     one archive and README.md, as a dataset: the form of PyTerrier's artifacts

A card describes the artifact or model, and states how to load it, its measures, how it was built, and its license.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import pyterrier as pt

from pyterrier_mathamr._common.errors import MathAMRError, first_line, require
from pyterrier_mathamr._common.parameters import ByPath
from pyterrier_mathamr._version import __version__

from .manifest import META, read_signed

if TYPE_CHECKING:
    import pandas as pd

EXTRA = "hub"
_LARGEST_FILE = 20e9  # bytes; an archive is split into files that the hub accepts


def card(
    *,
    title: str,
    tags: Sequence[str],
    usage: str,
    license: str = "",
    description: str = "",
    reproduction: str = "",
    measures: pd.DataFrame | None = None,
    metadata: Mapping[str, object] | None = None,
    front: Mapping[str, object] | None = None,
) -> str:
    """Write the ``README.md`` of a repository; see :meth:`SharedArtifact.to_hf`.

    ``usage`` is the Python code that loads and uses it, ``metadata`` are facts from its files, and ``front`` has
    further fields of the header. Without a license the card states that there is none.
    """
    header: dict[str, object] = {"license": license or None, "tags": list(tags), **(front or {})}
    lines = [f"{name}: {json.dumps(value)}" for name, value in header.items() if value is not None]
    sections = {
        "Use": _code("python", f"# pip install pyterrier-mathamr[{EXTRA}]\n{usage}"),
        "Measures": "" if measures is None else _table(measures),
        "How it was built": f"By pyterrier-mathamr {__version__}." + (_code("", reproduction) if reproduction else ""),
        "License": "" if license else "No license is given. Ask the author before you use it.",
        "Metadata": _code("json", json.dumps(metadata, indent=1)) if metadata else "",
    }
    parts = ["\n".join(["---", *lines, "---"]), f"# {title}", description.strip()]
    parts += [f"## {name}\n\n{text.strip()}" for name, text in sections.items() if text]
    return "\n\n".join(part for part in parts if part) + "\n"


def _code(language: str, text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"\n\n{fence}{language}\n{text.strip()}\n{fence}"


def _table(frame: pd.DataFrame) -> str:
    def row(cells: Sequence[object]) -> str:
        texts = [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells]
        return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"

    head = [row(list(frame.columns)), row(["---"] * len(frame.columns))]
    return "\n".join([*head, *(row(cells) for cells in frame.itertuples(index=False))])


def upload(folder: Path, repo: str, kind: Literal["model", "dataset"], *, private: bool | None = None) -> str:
    """Upload a folder to ``organization/name`` or ``organization/name@branch``, and return its address."""
    hub = require("huggingface_hub", EXTRA)
    name, branch = split_branch(repo)
    try:
        hub.create_repo(name, repo_type=kind, private=private, exist_ok=True)
        if branch is not None:
            hub.create_branch(name, repo_type=kind, branch=branch, exist_ok=True)
        return str(hub.upload_folder(repo_id=name, repo_type=kind, folder_path=str(folder), revision=branch))
    except Exception as error:  # of the connection, of the answer, of the name: each library has its own
        fix = "Check the name and the connection, and log in by `hf auth login`"
        raise MathAMRError(f"hf:{repo} cannot be written: {first_line(error)}. {fix}.") from error


def download(repo: str, patterns: Sequence[str]) -> Path:
    """Fetch some files of a model, and return the folder in the hub's cache.

    Raises:
        OSError: the hub cannot be reached, or has no such model. ValueError: ``repo`` is not a valid name.
    """
    name, branch = split_branch(repo)
    hub = require("huggingface_hub", EXTRA)
    return Path(hub.snapshot_download(name, revision=branch, allow_patterns=list(patterns)))


def split_branch(repo: str) -> tuple[str, str | None]:
    """Split ``organization/name@branch``; the branch is optional."""
    name, _, branch = repo.partition("@")
    return name, branch or None


class SharedArtifact(ByPath, pt.Artifact):  # type: ignore[misc]
    """An artifact that can be shared on the Hugging Face hub, with a complete card."""

    _USAGE: ClassVar[str] = ""
    """The lines of the card that use the loaded object as ``found``; ``{model}`` becomes the name of its model."""

    def to_hf(
        self,
        repo: str,
        *,
        branch: str | None = None,
        pretty_name: str | None = None,
        private: bool | None = None,
        license: str = "",
        description: str = "",
        reproduction: str = "",
        measures: pd.DataFrame | None = None,
    ) -> None:
        """Publish the artifact and everything in it on the Hugging Face hub.

        An engine contains its posts and the names of the folders from which it was built.

        Args:
            repo: ``organization/name``, perhaps with ``@branch``.
            branch: the branch, ``main`` by default.
            pretty_name: the heading of the card.
            private: whether a new repository is private.
            license: an identifier of the hub, such as ``cc-by-sa-4.0``.
            description: a description in Markdown.
            reproduction: the code or the commands that built it.
            measures: a table, such as ``pt.Experiment`` returns.

        Raises:
            MissingExtraError: huggingface_hub is not installed (extra ``hub``).
            StoreError: the artifact is not built or damaged.
            MathAMRError: the hub refuses it, or cannot be reached.
        """
        require("huggingface_hub", EXTRA)
        repo = repo if branch is None else f"{repo}@{branch}"
        with tempfile.TemporaryDirectory() as folder:
            about = {"license": license, "description": description, "reproduction": reproduction}
            write_package(self, Path(folder), repo, title=pretty_name, measures=measures, **about)
            upload(Path(folder), repo, "dataset", private=private)

    @classmethod
    def from_hf(
        cls, repo: str, branch: str | None = None, *, expected_sha256: str | None = None, **arguments: Any
    ) -> Self:
        """Fetch an artifact from the Hugging Face hub, once, and open it.

        Args:
            repo: ``organization/name``, perhaps with ``@branch``.
            branch: the branch, ``main`` by default.
            expected_sha256: the checksum that the archive must have.
            **arguments: of the constructor.

        Raises:
            MathAMRError: the hub has no such artifact, or cannot be reached.
        """
        try:
            artifact = pt.Artifact.from_hf(repo, branch, expected_sha256=expected_sha256, **arguments)
        except (OSError, ValueError) as error:
            reason = f"hf:{repo} cannot be fetched: {first_line(error)}. Check the name and the connection."
            raise MathAMRError(reason) from error
        if not isinstance(artifact, cls):
            kind = type(artifact).__name__
            raise MathAMRError(f"hf:{repo} is a {kind}, not a {cls.__name__}. Open it with its own class.")
        return artifact


def write_package(artifact: SharedArtifact, folder: Path, repo: str, *, title: str | None = None, **about: Any) -> None:
    """Write what ``to_hf`` uploads into a folder: the archive, and the card for a repository, with ``about`` in it."""
    manifest = read_signed(artifact.path / META)
    model = str(manifest.get("details", {}).get("model", "")).partition("@")[0]
    metadata: dict[str, Any] = {}
    package = str(folder / "artifact.tar.lz4")
    artifact.build_package(package, max_file_size=_LARGEST_FILE, metadata_out=metadata, verbose=False)
    facts = {name: value for name, value in metadata.items() if not isinstance(value, dict | list)}
    kinds = artifact.ARTIFACT_TYPE, f"{artifact.ARTIFACT_TYPE}.{artifact.ARTIFACT_FORMAT}"
    [entry] = entry_points(group="pyterrier.artifact", name=kinds[1])
    name = entry.value.replace("pyterrier_mathamr", "mathamr", 1).replace(":", ".")
    load = f"import pyterrier_mathamr as mathamr\n\nfound = {name}.from_hf({repo!r})\n"
    text = card(
        title=title or split_branch(repo)[0].rpartition("/")[2],
        tags=["pyterrier", "pyterrier-artifact", *(f"pyterrier-artifact.{each}" for each in kinds)],
        front={"pretty_name": title, "task_categories": ["text-retrieval"], "viewer": False},
        usage=load + artifact._USAGE.replace("{model}", model),
        metadata={**facts, "rows": manifest.get("count"), "model": model or None},
        **about,
    )
    (folder / "README.md").write_text(text, encoding="utf-8")
