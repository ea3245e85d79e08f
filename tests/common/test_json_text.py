"""JSON of others: each thing wrong with it is one kind of error, which the rooms name."""

import gzip

import pytest

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr.arqmath import read_training_pairs
from pyterrier_mathamr.fusion import LinearBlend, WeightsError
from pyterrier_mathamr.graph import GraphError, MathAMRGraph
from pyterrier_mathamr.model import MathAMRConfig


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "1" * 5000, "nonsense", ""])
def test_bad_json_is_a_value_error_which_each_reader_names(text, tmp_path) -> None:
    for written in (text, text.encode()):
        with pytest.raises(ValueError, match=r"too deeply|digits|Expecting"):
            parse_json(written)
    with pytest.raises(ConfigError):
        MathAMRConfig.from_json(text)
    for field in ("formula_map", "sentence_texts"):
        with pytest.raises(GraphError):
            MathAMRGraph.from_penman(f"# ::{field} {text}\n(a / b)")
    (tmp_path / "blend.json").write_text(text)
    with pytest.raises(WeightsError):
        LinearBlend.load(tmp_path / "blend.json", [])
    with gzip.open(tmp_path / "pairs.jsonl.gz", "wt") as file:
        file.write(f'{text or "{}"}\n{{"qid": "q", "aid": "a", "question": "Q", "answer": "A"}}\n')
    with pytest.warns(MathAMRWarning, match=r"pairs\.jsonl\.gz, line 1"):
        read_training_pairs(tmp_path / "pairs.jsonl.gz")
