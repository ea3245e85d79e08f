"""A transformer is the parameters it was made with; an artifact is its path."""

import inspect
import pickle
import pydoc
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import pyterrier_mathamr as mathamr
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.parameters import COUNT, FLAG, ByParameters, Rule, at_least, one_of
from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.formula import FormulaStore


class Searcher(ByParameters):
    """Has a method of the name of one parameter, and one of the name of another after an underscore."""

    def __init__(self, path: str, search: str = "exact", *, tokens: int = 3) -> None:
        self.path, self._search, self.tokens = path, search, tokens

    def search(self, query: str) -> str:
        return query

    def _tokens(self) -> int:
        return 0


class Forwarding(Searcher):
    """Hands options on to its base class."""

    def __init__(self, path: str, **others: object) -> None:
        super().__init__(path, **others)  # type: ignore[arg-type]
        self.others = others


def test_parameters_are_the_identity_and_the_repr_shows_what_differs_from_the_defaults() -> None:
    assert Searcher("here", "fast").parameters() == {"path": "here", "search": "fast", "tokens": 3}
    for made, shown in (
        (Searcher("here"), "Searcher(path='here')"),
        (Searcher("here", "fast", tokens=4), "Searcher(path='here', search='fast', tokens=4)"),
        (Forwarding("here", tokens=4), "Forwarding(path='here', tokens=4)"),
    ):
        assert repr(made) == shown
        assert eval(shown) == made
        assert hash(eval(shown)) == hash(made)
    assert Searcher("here") == Searcher("here", "exact") != Searcher("there")
    assert Forwarding("here", tokens=4) != Forwarding("here", tokens=5)


class Checked(ByParameters):
    """Declares the values of its options."""

    checks: ClassVar[dict[str, Rule]] = {
        "num_results": COUNT,
        "candidates": COUNT.or_none(),
        "cut": at_least(0),
        "search": one_of("exact", "approximate"),
        "verbose": FLAG,
    }

    def __init__(
        self,
        *,
        num_results: object = 9,
        candidates: object = None,
        cut: object = 0,
        search: object = "exact",
        verbose: object = False,
    ) -> None:
        self.num_results, self.candidates, self.cut, self._search = num_results, candidates, cut, search
        self.verbose = verbose


@pytest.mark.parametrize(
    "options",
    [
        {"num_results": 1, "candidates": 5, "cut": 0, "search": "approximate"},
        {"num_results": np.int64(5), "cut": np.uint8(3)},
        {"candidates": None, "verbose": True},
        {"verbose": np.True_},
    ],
)
def test_an_option_that_its_rule_allows_is_taken(options: dict[str, object]) -> None:
    assert Checked(**options).parameters().items() >= options.items()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *((option, value) for option in ("num_results", "candidates") for value in (0, -1, 3.5, 3.0, "3", True, [])),
        *(("cut", value) for value in (-1, 0.0, False, None)),
        ("num_results", None),
        *(("search", value) for value in ("hnsw", None, 1)),
        *(("verbose", value) for value in (1, 0, 1.0, np.int64(0), "yes", None, np.array([True]))),
    ],
)
def test_an_option_is_refused_when_given_and_when_set(option: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"{option}="):
        Checked(**{option: value})
    made = Checked()
    before = made.parameters()
    with pytest.raises(ConfigError, match=f"{option}=") as refused:
        setattr(made, "_search" if option == "search" else option, value)
    assert made.parameters() == before
    assert refused.value.option == option


def test_a_rule_lists_the_allowed_values() -> None:
    with pytest.raises(ConfigError, match="candidates=0 is not accepted; give an integer, 1 or more, or None"):
        Checked(candidates=0)
    with pytest.raises(ConfigError, match="give 'exact' or 'approximate'"):
        Checked(search="fast")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Checked(num_results=5), Checked(num_results=np.int64(5))),
        (Searcher("a", tokens=[1, 2]), Searcher("a", tokens=[np.int32(1), 2.0])),  # type: ignore[arg-type]
        (Searcher("a", tokens={"a": 1}), Searcher("a", tokens={"a": True})),  # type: ignore[arg-type]
        (Searcher(mathamr.BM25Index("a")), Searcher(mathamr.BM25Index(Path("a").absolute()))),  # type: ignore[arg-type]
    ],
    ids=["numpy", "list", "dict", "path"],
)
def test_equal_objects_hash_equally(one: object, other: object) -> None:
    assert one == other
    assert hash(one) == hash(other)


KINDS = [
    *(mathamr.MathAMRIndex, mathamr.MathAMRFormulaIndex, mathamr.GraphStore, mathamr.BM25Index, mathamr.TangentIndex),
    *(FormulaStore, ARQMathCollection),
]


def test_the_same_place_is_equal_by_a_relative_or_an_absolute_path(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    for kind in KINDS:
        here = kind(tmp_path / "a")
        assert here == kind("a") == pickle.loads(pickle.dumps(here))
        assert hash(here) == hash(kind("a"))
        assert here != kind(tmp_path)
        assert repr(kind("a")) == f"{kind.__name__}('a')"
        assert [other for other in KINDS if kind("a") == other("a")] == [kind]


def test_a_constructing_method_is_a_method_with_the_parameters_of_the_class_and_documents_its_result() -> None:
    shown = inspect.signature(mathamr.BM25Index("x.bm25").retriever)
    assert list(shown.parameters) == ["num_results", "k1", "b", "query_weights", "delta", "weighting", "verbose"]
    assert shown.parameters["num_results"].default == 1000
    assert shown.return_annotation == "BM25Retriever"
    index = mathamr.MathAMRIndex("x.mathamr")
    assert pickle.loads(pickle.dumps(index.doc_vn))(7) == index.doc_vn(candidates=7)
    assert [*inspect.signature(mathamr.MathAMRIndex.doc_vn).parameters][:2] == ["self", "candidates"]


def test_help_shows_a_constructing_method_as_it_is_called() -> None:
    for name in ("colbert", "retriever"):
        shown = pydoc.plain(pydoc.render_doc(getattr(mathamr.MathAMRIndex("x.mathamr"), name)))
        call, _, text = shown.partition("\n\n")[2].partition("\n")
        assert call.startswith(f"{name}(*, num_results: 'int' = 1000, exact: 'bool' = True, ")
        assert ") -> 'ColBERTRetriever' method of " in call
        assert "\n        num_results: " in text
        assert "\n        index: " not in text
        assert "self" not in call
    assert "Args:" not in str(inspect.getdoc(mathamr.MathAMRIndex.vec_loader))  # which has no options


def test_a_class_has_the_parameters_of_its_constructor_for_those_who_read_new_first() -> None:
    for kind in (mathamr.GraphBuilder, mathamr.MathAMRIndex, mathamr.BM25Index, mathamr.QdrantIndex):
        own = list(inspect.signature(kind.__init__).parameters)[1:]
        assert list(kind.__signature__.parameters) == own  # type: ignore[attr-defined]
        assert "args" not in own
    assert list(inspect.signature(mathamr.MathAMRIndex("x.mathamr")).parameters) == ["inp"]  # of an instance's call
