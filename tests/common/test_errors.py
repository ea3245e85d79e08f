"""Errors: fields, a message over them, and the way out of another process."""

import pickle

import pytest

from pyterrier_mathamr._common.errors import ConfigError, MathAMRError, MissingExtraError


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
    """Without fields of its own."""

    advice = ""


def test_a_message_is_made_of_fields_and_properties() -> None:
    assert str(LostError("A{1}", ("store", "index"))) == "'A{1}' is not in store. Look in 2 places."
    assert str(ForgottenError("A1")) == "'A1' is not in here."


def test_fields_are_attributes_arguments_and_survive_pickling() -> None:
    error = LostError(docno="A1", places=("store",))
    assert (error.docno, error.args) == ("A1", ("A1", ("store",)))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is LostError
    assert str(again) == str(error)


def test_a_field_that_is_not_given_is_refused() -> None:
    with pytest.raises(TypeError, match="allowed"):
        ConfigError("layers", -1)  # type: ignore[call-arg]


def test_an_error_is_what_its_other_base_is_too() -> None:
    with pytest.raises(KeyError):
        raise ForgottenError("A1")
    with pytest.raises(ImportError, match=r"pip install 'pyterrier-mathamr\[plots\]'"):
        raise MissingExtraError("matplotlib", "plots")


def test_an_error_without_a_template_is_the_text_it_was_given() -> None:
    assert str(MathAMRError("nothing {was} found")) == "nothing {was} found"
