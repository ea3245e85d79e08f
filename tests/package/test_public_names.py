"""The exports of both packages: documented, typed, and used by somebody else."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import mathamr_systems
import pyterrier_mathamr as mathamr

PACKAGE, SYSTEMS = Path(mathamr.__file__).parent, Path(mathamr_systems.__file__).parent
ROOT = PACKAGE.parent
FACES = {f"pyterrier_mathamr.{path.parent.name}": path.parent for path in sorted(PACKAGE.glob("*/__init__.py"))}
FACES |= {"mathamr_systems": SYSTEMS, "mathamr_systems.experiments": SYSTEMS / "experiments"}


def public_names(face: str) -> list[str]:
    return list(getattr(import_module(face), "__all__", []))


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
        and getattr(member, "__module__", "").startswith(("pyterrier_mathamr", "mathamr_systems"))
    ]


@pytest.mark.parametrize("face", FACES)
def test_exports_are_documented_and_typed(face: str) -> None:
    wanting = []
    for name in public_names(face):
        value = getattr(import_module(face), name)
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


def readers_of(face: str) -> str:
    """All code elsewhere, also of studies, and all pages and examples, which may use what a face exports."""
    own = set(FACES[face].glob("*.py")) if face == "mathamr_systems" else set(FACES[face].rglob("*.py"))
    files = [path for package in (PACKAGE, SYSTEMS) for path in package.rglob("*.py") if path not in own]
    for folder in ("studies", "benchmarks", "examples", "docs"):
        files += [path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".ipynb")]
    files += [ROOT / "README.md", ROOT / "setup.cfg", ROOT / "systems" / "setup.cfg", PACKAGE / "__init__.pyi"]
    files += (PACKAGE / "pt_docs").glob("*.rst")
    return "\n".join(path.read_text(encoding="utf-8") for path in files if path.is_file())


@pytest.mark.parametrize("face", FACES)
def test_nothing_is_exported_that_nobody_else_uses(face: str) -> None:
    if not (ROOT / "docs").is_dir():
        pytest.skip("not a checkout: the pages are not there")
    used = set(re.findall(r"\w+", readers_of(face)))
    for_users = ("Error", "Warning")  # for users to catch
    assert [name for name in public_names(face) if name not in used and not name.endswith(for_users)] == []


def test_a_name_means_one_thing() -> None:
    meanings: dict[str, set[str]] = {}
    for path in (*PACKAGE.rglob("*.py"), *SYSTEMS.rglob("*.py")):
        for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE):
            meanings.setdefault(name, set()).add(path.as_posix())
    assert {name: sorted(files) for name, files in meanings.items() if len(files) > 1} == {}


def test_the_package_shows_only_its_public_names() -> None:
    assert {"annotations", "TYPE_CHECKING", "lazy_loader"}.isdisjoint(dir(mathamr))
    assert [name for name in dir(mathamr) if isinstance(getattr(mathamr, name), ModuleType)] == sorted(
        name for name in mathamr.__all__ if isinstance(getattr(mathamr, name), ModuleType)
    )
