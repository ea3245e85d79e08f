"""Our stages in PyTerrier's pipelines: frames are indexed, empty frames stay empty, drawings need no network."""

import pickle

import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr._common.frames import documents
from pyterrier_mathamr._common.transformers import HELP_URL, Indexer, Pipeline, Transformer

DOCUMENTS = pd.DataFrame({"docno": ["a", "b", "c"], "text": ["x", "y", "z"]})


class Loud(Transformer):
    """Needs a column and writes it in capitals."""

    label = "loud"

    def __init__(self, mark: str = "!") -> None:
        super().__init__()
        self.mark = mark

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        return inp.assign(text=inp["text"].str.upper() + self.mark)

    def fuse_left(self, left: pt.Transformer) -> pt.Transformer | None:
        return Loud(left.mark + self.mark) if isinstance(left, Loud) else None


class Collecting(Indexer):
    """Keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def index(self, iter: object, **kwargs: object) -> list[str]:
        return [f"{row['docno']} {row['text']}" for row in documents(iter)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pipeline",
    [
        Loud() >> Collecting(),
        Loud() >> pt.Transformer.identity() >> Collecting(),
        Loud() >> (pt.Transformer.identity() >> Collecting()),
        (Loud() >> pt.Transformer.identity()) >> (pt.Transformer.identity() >> Collecting()),
        (Loud("") >> Loud() >> Collecting()).compile(),
    ],
)
def test_a_pipeline_indexes_a_frame_as_its_dictionaries(pipeline: pt.Compose) -> None:
    assert pipeline.index(DOCUMENTS) == ["a X!", "b Y!", "c Z!"]
    assert pipeline.index(iter(DOCUMENTS.to_dict("records")), batch_size=2) == ["a X!", "b Y!", "c Z!"]
    assert pipeline.index(DOCUMENTS.iloc[:0]) == []


def test_a_pipeline_is_flat_and_equal_to_that_of_pyterrier() -> None:
    one, two, three, four = Loud(), pt.Transformer.identity(), Loud("?"), Collecting()
    ours, theirs = one >> (two >> three) >> four, pt.Compose(one, two, three, four)
    assert list(ours) == list(theirs)
    assert repr(ours) == f"({' >> '.join(map(repr, theirs))})"  # complete, where PyTerrier's has the short names
    assert ours == theirs == ours
    assert hash(ours) == hash(theirs)
    assert isinstance(ours, Pipeline)
    copied = pickle.loads(pickle.dumps(one >> three))
    assert copied == one >> three
    assert isinstance(copied, Pipeline)


def test_a_pipeline_is_compiled_and_supports_operators_like_any() -> None:
    assert (Loud() >> Loud("?")).compile() == Loud("!?")
    assert isinstance((Loud() >> Loud("?") >> Collecting()).compile(), Pipeline)
    ranking = DOCUMENTS.assign(qid="1", score=[3.0, 2.0, 1.0], rank=[0, 1, 2])
    assert ((Loud() >> Loud("?")) % 2)(ranking)["text"].tolist() == ["X!?", "Y!?"]
    assert (Loud() * 2.0)(ranking)["score"].tolist() == [6.0, 4.0, 2.0]


def test_an_empty_frame_gives_an_empty_frame() -> None:
    assert Loud()([]) == []
    assert list(Loud().transform_iter(iter([]))) == []
    assert (Loud() >> Loud())([]) == []
    assert Loud()([{"text": "x"}]) == [{"text": "X!"}]


def test_a_drawing_has_the_label_or_the_name_and_asks_no_network() -> None:
    assert Loud().schematic() == {"label": "loud", "help_url": HELP_URL}
    assert Collecting().schematic() == {"label": "Collecting", "help_url": HELP_URL}
