"""A transformer is the parameters it was made with."""

import pytest

from pyterrier_mathamr._common.parameters import ByParameters


class Searcher(ByParameters):
    """Has a method of the name of one parameter, and one of the name of another after an underscore."""

    def __init__(self, path: str, search: str = "exact", *, tokens: int = 3) -> None:
        self.path, self._search, self.tokens = path, search, tokens

    def search(self, query: str) -> str:
        return query

    def _tokens(self) -> int:
        return 0


def test_methods_are_not_taken_for_parameters_of_their_names() -> None:
    assert Searcher("here", "fast").parameters() == {"path": "here", "search": "fast", "tokens": 3}


@pytest.mark.parametrize(
    ("options", "shown"), [({}, ""), ({"search": "fast", "tokens": 4}, ", search='fast', tokens=4")]
)
def test_the_repr_shows_what_differs_from_the_defaults_and_rebuilds(options: dict[str, object], shown: str) -> None:
    made = Searcher("here", **options)  # type: ignore[arg-type]
    assert repr(made) == f"Searcher(path='here'{shown})"
    assert eval(repr(made)) == made


def test_equality_is_by_parameters_and_hashes_agree() -> None:
    assert Searcher("here") == Searcher("here", "exact")
    assert hash(Searcher("here")) == hash(Searcher("here", "exact"))
    assert Searcher("here") != Searcher("there")


class Forwarding(Searcher):
    """Hands options on to its base class."""

    def __init__(self, path: str, **others: object) -> None:
        super().__init__(path, **others)  # type: ignore[arg-type]
        self.others = others


def test_options_that_are_handed_on_are_parameters_like_any_other() -> None:
    made = Forwarding("here", tokens=4)
    assert repr(made) == "Forwarding(path='here', tokens=4)"
    assert made == eval(repr(made)) != Forwarding("here", tokens=5)
