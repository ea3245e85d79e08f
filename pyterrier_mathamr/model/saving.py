"""Models on disk: where they lie, descriptions and weights, and equality by identity. Nothing is unpickled.

A model is a folder with a signed description, such as ``config.json`` or ``marf.json``: format, options, and checksums
of files. Weights are safetensors of float32 or float16.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from pyterrier_mathamr._common.errors import ConfigError, MathAMRError, first_line, is_refusal
from pyterrier_mathamr.store import file_sum, read_signed
from pyterrier_mathamr.store.hub import card, download, split_branch, upload

from .errors import ModelFileError, ModelNotFoundError

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor, nn

HUB = "hf:"
"""The prefix of the name of a model on the Hugging Face hub."""

FETCHED = ("*.json", "*.json.gz", "*.safetensors", "*.txt")  # of a model on the hub: no pickles and no code
BUNDLED = Path(__file__).parent.parent / "data" / "models"

DEFAULT_MODEL = "mathamr-plus-text"
"""The bundled model that is used where none is named: the best of those whose encoder is bundled, too."""

LARGE_MODEL = "mathamr-plus-text-large"
"""A bundled model that ranks better and encodes six times as slowly; its encoder is not in the package."""

CONFIG, WEIGHTS = "config.json", "weights.safetensors"  # of the description of a `MathAMR`, of all weights


def bundled_models() -> Iterator[Path]:
    """Yield the folders of bundled models: this package's, and then those of packages that register models."""
    yield BUNDLED
    yield from _bundled_elsewhere()


@cache
def _bundled_elsewhere() -> tuple[Path, ...]:
    packages = {entry.module.partition(".")[0] for entry in entry_points(group="mathamr_models")}
    specs = [find_spec(package) for package in sorted(packages - {__name__.partition(".")[0]})]
    folders = [spec.submodule_search_locations[0] for spec in specs if spec and spec.submodule_search_locations]
    return tuple(Path(folder) / "data" / "models" for folder in folders)


def find_saved(name: str | Path, description: str = CONFIG) -> Path:
    """Find the folder of a model with such a description by path, bundled name or name on the hub."""
    if str(name).startswith(HUB):
        return fetched(str(name), FETCHED)
    for folder in chain([Path(name)], (models / name for models in bundled_models())):
        if (folder / description).is_file():
            return folder
    names = (path.parent.name for models in bundled_models() for path in models.glob(f"*/{description}"))
    bundled = ", ".join(sorted(names)) or "none is installed"
    known = f"it is neither a folder with a {description} nor one of the bundled models ({bundled})"
    reason = f"{known}. Give a bundled name, the path that save() wrote, or hf:organization/name"
    raise ModelNotFoundError(str(name), reason)


def short_name(folder: Path) -> str:
    """Return the shortest name of a model's folder that :func:`find_saved` reads: a bundled one by its name."""
    return folder.name if folder.parent in bundled_models() else str(folder)


def lasting_name(name: str | Path) -> str:
    """Return a name that :func:`find_saved` reads in every current folder; a path may be relative to this one."""
    return str(name) if str(name).startswith(HUB) else short_name(find_saved(name).absolute())


def folder_name(folder: Path | None) -> str:
    """Name a model's folder, or its place on the hub if it is in the cache of the hub."""
    if folder is None:
        return "unsaved"
    folder = folder.absolute()
    if folder.parent.name == "snapshots":  # the cache of the hub: models--organization--name/snapshots/revision
        return folder.parent.parent.name.removeprefix("models--").replace("--", "/")
    return folder.name


def fetched(name: str, patterns: Sequence[str], *, revision: str | None = None) -> Path:
    """Fetch the files of ``hf:organization/name`` or ``hf:organization/name@branch`` that match some patterns."""
    repo = name.removeprefix(HUB) + (f"@{revision}" if revision else "")
    try:
        return download(repo, patterns)
    except (OSError, ValueError) as error:  # the bases of its errors: of the connection, of the answer, of the name
        fix = "Check the name and the connection; without one, give the path of a copy"
        raise ModelNotFoundError(name, f"it cannot be fetched ({first_line(error)}). {fix}") from error


def check_new_folder(path: str | Path, option: str = "path") -> Path:
    if Path(path).exists():
        raise ConfigError(option, str(path), "a folder that does not exist yet")
    return Path(path)


T = TypeVar("T")


def read_description(
    path: Path,
    version: int,
    name: str,
    read: Callable[[dict[str, Any]], T],
    load: Callable[[Path], dict[str, Any]] = read_signed,
) -> T:
    """Read a description that :func:`~pyterrier_mathamr.store.signed` wrote, or another file by ``load``."""
    try:
        content = load(path)
        if content["format"] != version:
            problem = f"model format {content['format']!r}, but this release reads {version}"
            raise ModelFileError(path, problem, "Install the release that wrote it, or a later one.")
        return read(content)
    except ModelFileError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, MathAMRError) as error:
        raise ModelFileError(path, f"no {name} ({type(error).__name__}: {error})") from error


def sums_of(folder: Path) -> dict[str, str]:
    """Return the sha256 of each file in a folder, by its path in it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): file_sum(path).sha256 for path in files}


def sum_faults(folder: Path, sums: Mapping[str, object]) -> Iterator[ModelFileError]:
    """Compare the files in a folder with the result of :func:`sums_of`, and yield the faults."""
    for name, expected in sums.items():
        try:
            if file_sum(folder / name).sha256 != expected:
                yield ModelFileError(folder / name, "its content was changed since it was written")
        except (OSError, ValueError):
            yield ModelFileError(folder / name, "the file is missing")


def read_weights(
    path: Path, digest: str, description: str, layers: int = 0, build: Callable[[], nn.Module] | None = None
) -> dict[str, Tensor]:
    """Read weights as float32; with ``build``, check that they fit the network that it makes."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        weights = {name: tensor.float() for name, tensor in load(weights_data(path, digest, description)).items()}
    except SafetensorError as error:
        raise unreadable(path, error) from error
    if build is None:
        return weights
    wrong = other_shapes(path, description)
    if layers > len(weights):  # each layer has weights, and building even empty layers costs time
        raise wrong
    try:
        shapes = _shapes_of(build)
    except (RuntimeError, OverflowError, TypeError, ValueError) as error:  # sizes that no tensor can have
        raise wrong from error
    for name in sorted({*weights, *shapes}):
        shape = tuple(weights[name].shape) if name in weights else None
        if shape != shapes.get(name):
            raise ModelFileError(path, f"{wrong.problem}: {name!r} has shape {shape}, not {shapes.get(name)}")
        if not bool(torch.isfinite(weights[name]).all()):
            raise not_finite(path, name)
    return weights


def _shapes_of(build: Callable[[], nn.Module]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a network's weights, from a device without memory."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Unfilled(TorchFunctionMode):  # skips normal noise, which would import torch's compiler here: a second
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.nn.init.normal_ or func is torch.Tensor.normal_:
                return args[0] if args else kwargs["tensor"]
            return func(*args, **(kwargs or {}))

    with torch.device("meta"), Unfilled():
        return {name: tuple(tensor.shape) for name, tensor in build().state_dict().items()}


def weights_data(path: Path, digest: str, description: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise ModelFileError(path, f"the weights differ from the ones that {description} names")
    return data


def unreadable(path: Path, error: Exception) -> ModelFileError:
    refused = isinstance(error, OSError) and is_refusal(error)
    fix = "Remove the cause, and try again." if refused else ModelFileError.fix
    return ModelFileError(path, f"it cannot be read ({error})", fix)


def not_finite(path: Path, name: str) -> ModelFileError:
    return ModelFileError(path, f"{name!r} has values that are not finite numbers")


def other_shapes(path: Path, description: str) -> ModelFileError:
    """Return the error for weights that do not fit a model's options."""
    return ModelFileError(path, f"the weights are not of the names and shapes that {description} asks for")


def pack_weights(weights: Mapping[str, Tensor], dtype: str = "float32") -> bytes:
    """Return the bytes of ``weights.safetensors``, the same for the same weights."""
    import torch
    from safetensors.torch import save

    kinds = {"float32": torch.float32, "float16": torch.float16}
    if dtype not in kinds:
        raise ConfigError("dtype", dtype, "'float32' or 'float16'")
    data: bytes = save({name: weights[name].to(kinds[dtype]).contiguous() for name in sorted(weights)})
    return data


def stored_dtype(folder: Path | None) -> str:
    """Return the type of the weights in a folder, ``float32`` or ``float16``; without a folder, ``float32``."""
    from safetensors import safe_open

    if folder is None:
        return "float32"
    with safe_open(folder / WEIGHTS, "pt") as file:
        kinds = {file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118 - it is not a mapping
    return "float16" if kinds == {"F16"} else "float32"


class SavedModel:
    """A model that can be saved: equality and hash by its identity, and a `repr` that opens it again where it can."""

    DESCRIPTION: ClassVar[str]  # the file by which the folder of a saved model is recognized
    NOUN: ClassVar[str] = "model"
    _folder: Path | None  # where it was opened; None if it was made or trained since

    @classmethod
    def from_pretrained(cls, name_or_path: str | Path) -> Self:
        """Open a model."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write the model to a new folder."""
        raise NotImplementedError

    @classmethod
    def faults(cls, folder: Path) -> Iterator[MathAMRError]:
        """Read a saved model, compare every checksum, and yield the faults."""
        try:
            cls.from_pretrained(folder)
        except MathAMRError as error:
            yield error

    @classmethod
    def described(cls, folder: Path) -> str:
        """Describe a saved model in a few words."""
        return f"{cls.NOUN} {cls.from_pretrained(folder).identity[:12]}"

    @classmethod
    def from_hf(cls, repo: str) -> Self:
        """Open a model of the Hugging Face hub: ``organization/name``, perhaps with ``@branch`` (extra ``hub``)."""
        return cls.from_pretrained(HUB + repo)

    def to_hf(
        self,
        repo: str,
        *,
        private: bool | None = None,
        license: str = "",
        description: str = "",
        reproduction: str = "",
        measures: pd.DataFrame | None = None,
    ) -> None:
        """Publish the model on the Hugging Face hub.

        Args:
            repo: ``organization/name``, perhaps with ``@branch``.
            private: whether a new repository is private.
            license: an identifier of the hub, such as ``cc-by-sa-4.0``.
            description: a description in Markdown.
            reproduction: the code or the commands that trained it.
            measures: a table, such as ``pt.Experiment`` returns.

        Raises:
            MissingExtraError: huggingface_hub is not installed (extra ``hub``).
            MathAMRError: the hub refuses it, or cannot be reached.
        """
        package = type(self).__module__.partition(".")[0]
        alias = "mathamr" if package == "pyterrier_mathamr" else package
        imported = f"{package} as {alias}" if alias != package else package
        text = card(
            title=split_branch(repo)[0].rpartition("/")[2],
            tags=["pyterrier", "math-aware-retrieval"],
            front={"library_name": "pyterrier-mathamr"},
            usage=f"import {imported}\n\nmodel = {alias}.{type(self).__name__}.from_hf({repo!r})",
            license=license, description=description, reproduction=reproduction, measures=measures,
            metadata={"identity": self.identity},
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place, "model")
            self.save(folder)
            (folder / "README.md").write_text(text, encoding="utf-8")
            upload(folder, repo, "model", private=private)

    @property
    def identity(self) -> str:
        """Digest of everything that determines the model's results."""
        raise NotImplementedError

    def _opened_by(self) -> str | None:
        """Return the arguments of ``from_pretrained`` that open the model again, if any."""
        return None if self._folder is None else repr(short_name(self._folder))

    @property
    def nickname(self) -> str:
        """What the names of transformers call it."""
        return folder_name(self._folder).rpartition("/")[2]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SavedModel) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        name, arguments = type(self).__name__, self._opened_by()
        return f"<{name} {self.identity[:12]}>" if arguments is None else f"{name}.from_pretrained({arguments})"
