"""Errors: fields, a message over them, and the way out of another process; optional packages."""

import pickle
import sys
import types
from pathlib import Path

import pytest

from pyterrier_mathamr._common.errors import ConfigError, MathAMRError, MissingExtraError, require


class LostError(MathAMRError, KeyError):
    """For these tests: fields, a property and advice."""

    docno: str
    places: tuple[str, ...] = ("here",)
    template = "{docno!r} is not in {first}."
    advice = "Look in {count} places."

    @property
    def first(self) -> str:
        return self.places[0]

    @property
    def count(self) -> int:
        return len(self.places)


class ForgottenError(LostError):
    """Without fields."""

    advice = ""


def test_a_message_is_made_of_fields_and_properties_or_is_the_text_that_was_given() -> None:
    assert str(LostError("A{1}", ("store", "index"))) == "'A{1}' is not in store. Look in 2 places."
    assert str(ForgottenError("A1")) == "'A1' is not in here."
    assert str(MathAMRError("nothing {was} found")) == "nothing {was} found"


def test_fields_are_attributes_and_arguments_and_survive_pickling() -> None:
    error = LostError(docno="A1", places=("store",))
    assert (error.docno, error.args) == ("A1", ("A1", ("store",)))
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (LostError, str(error))
    with pytest.raises(KeyError):
        raise again
    with pytest.raises(TypeError, match="allowed"):
        ConfigError("layers", -1)  # type: ignore[call-arg]


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, code):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(code)

    return write


def test_a_package_that_is_there_is_given_and_one_that_is_absent_is_named_with_its_extra(package):
    package("optional_whole", "answer = 42")
    assert require("optional_whole", "text").answer == 42
    for module in ("optional_absent", "optional_absent.part"):
        remedy = r"optional_absent is not installed; run: pip install 'pyterrier-mathamr\[text\]'"
        with pytest.raises(MissingExtraError, match=remedy) as raised:
            require(module, "text")
        assert isinstance(raised.value, ImportError)


@pytest.mark.parametrize(
    ("module", "code", "reason"),
    [
        ("lacks_another", "import optional_absent", "No module named 'optional_absent'"),
        ("lacks_a_name", "from json import no_such", "cannot import name 'no_such'"),
        ("fails", "raise RuntimeError('built for\\nanother torch')", "RuntimeError: built for"),
        ("partial.part", "", "partial.part"),
    ],
)
def test_a_package_that_is_there_and_fails_is_not_called_absent(package, module, code, reason):
    package(module.partition(".")[0], code)
    with pytest.raises(MissingExtraError, match="is installed but cannot be imported") as raised:
        require(module, "text")
    assert reason in str(raised.value)
    assert raised.value.__cause__ is not None
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_a_version_that_is_too_old_for_an_extra_is_named_and_so_is_the_least(monkeypatch):
    library = types.ModuleType("sentence_transformers")
    library.__version__ = "5.3.0"
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    assert require("sentence_transformers", "text") is library
    for module, extra in (("sentence_transformers", "colbert"), ("sentence_transformers.base.modules", "answers")):
        with pytest.raises(MissingExtraError, match=rf"5\.3\.0 is installed, but 6 or later.*\[{extra}\]"):
            require(module, extra)
        setup = (Path(__file__).parents[2] / "systems" / "setup.cfg").read_text("utf-8")
        assert f"\n{extra} =\n    sentence-transformers>=6\n" in setup
    library.__version__ = "6.0.0"
    assert require("sentence_transformers", "colbert") is library


def test_a_required_package_that_cannot_be_imported_is_named_without_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "penman", None)
    with pytest.raises(MissingExtraError, match=r"penman.*pip install pyterrier-mathamr$"):
        require("penman")
