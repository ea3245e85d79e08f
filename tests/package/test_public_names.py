"""The exports of the rooms: documented, typed, and used by somebody else."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import pyterrier_mathamr as mathamr

PACKAGE = Path(mathamr.__file__).parent
ROOT = PACKAGE.parent
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def public_names(room: str) -> list[str]:
    return list(getattr(import_module(f"pyterrier_mathamr.{room}"), "__all__", []))


def functions_of(value: object) -> list[tuple[str, object]]:
    """A function, or the constructor and public methods that a class defines itself."""
    if inspect.isfunction(value):
        return [(value.__name__, value)]
    if not inspect.isclass(value):
        return []
    return [
        (f"{value.__name__}.{name}", member.__func__ if isinstance(member, (classmethod, staticmethod)) else member)
        for name, member in vars(value).items()
        if (name == "__init__" or not name.startswith("_"))
        and inspect.isfunction(member.__func__ if isinstance(member, (classmethod, staticmethod)) else member)
        and getattr(member, "__module__", "").startswith("pyterrier_mathamr")
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_exports_of_a_room_are_documented_and_typed(room: str) -> None:
    wanting = []
    for name in public_names(room):
        value = getattr(import_module(f"pyterrier_mathamr.{room}"), name)
        if (inspect.isclass(value) or inspect.isfunction(value)) and not (value.__doc__ or "").strip():
            wanting.append(f"{name} has no docstring")
        for function, of in functions_of(value):
            signature = inspect.signature(of)
            bare = [
                parameter.name
                for parameter in signature.parameters.values()
                if parameter.annotation is parameter.empty and parameter.name not in ("self", "cls")
            ]
            if bare or signature.return_annotation is signature.empty:
                wanting.append(f"{function} has no type for {', '.join(bare) or 'its result'}")
    assert wanting == []


def readers_of(room: str) -> str:
    """All code of other rooms and studies, and all pages and examples, which may use what a room exports."""
    files = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] != room]
    for folder in ("studies", "benchmarks", "examples", "docs"):
        files += [path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".ipynb")]
    files += [ROOT / "README.md", ROOT / "setup.cfg", PACKAGE / "__init__.pyi", *(PACKAGE / "pt_docs").glob("*.rst")]
    return "\n".join(path.read_text(encoding="utf-8") for path in files if path.is_file())


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_exports_nothing_that_nobody_else_uses(room: str) -> None:
    if not (ROOT / "docs").is_dir():
        pytest.skip("not a checkout: the pages are not there")
    used = set(re.findall(r"\w+", readers_of(room)))
    for_users = ("Error", "Warning")  # for users to catch
    assert [name for name in public_names(room) if name not in used and not name.endswith(for_users)] == []


def test_a_name_means_one_thing() -> None:
    meanings: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE):
            meanings.setdefault(name, set()).add(path.relative_to(PACKAGE).as_posix())
    assert {name: sorted(files) for name, files in meanings.items() if len(files) > 1} == {}


def test_the_package_shows_only_its_public_names() -> None:
    assert {"annotations", "TYPE_CHECKING", "lazy_loader"}.isdisjoint(dir(mathamr))
    assert [name for name in dir(mathamr) if isinstance(getattr(mathamr, name), ModuleType)] == sorted(
        name for name in mathamr.__all__ if isinstance(getattr(mathamr, name), ModuleType)
    )
