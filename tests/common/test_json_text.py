"""JSON of others: each thing wrong with it is one kind of error, which the rooms name."""

import gzip

import pytest

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr.arqmath import read_training_pairs
from pyterrier_mathamr.fusion import LinearBlend, WeightsFileError
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.graph.errors import GraphMetadataError
from pyterrier_mathamr.graph.store import graph_of
from pyterrier_mathamr.model import MathAMRConfig

WHY = "too deeply|digits|Expecting|no record"
BAD = ["[" * 100_000, '{"a":' * 100_000, "1" * 5000, "nonsense", ""]


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:5] or "nothing")
class TestBadJson:
    def test_it_is_a_value_error(self, text):
        for written in (text, text.encode()):
            with pytest.raises(ValueError, match=WHY):
                parse_json(written)

    def test_a_configuration_is_refused(self, text):
        with pytest.raises(ConfigError):
            MathAMRConfig.from_json(text)

    def test_a_graph_is_refused(self, text):
        with pytest.raises(GraphMetadataError):
            MathAMRGraph.from_penman(f"# ::formula_map {text}\n(a / b)")
        with pytest.raises(GraphMetadataError):
            MathAMRGraph.from_penman(f"# ::sentence_texts {text}\n(a / b)")
        with pytest.raises(ValueError, match=WHY):
            graph_of(text)

    def test_a_blend_is_refused(self, text, tmp_path):
        (tmp_path / "blend.json").write_text(text)
        with pytest.raises(WeightsFileError):
            LinearBlend.load(tmp_path / "blend.json", [])

    def test_a_line_of_pairs_is_skipped_with_a_warning(self, text, tmp_path):
        with gzip.open(tmp_path / "pairs.jsonl.gz", "wt") as file:
            file.write(f'{text or "{}"}\n{{"qid": "q", "aid": "a", "question": "Q", "answer": "A"}}\n')
        with pytest.warns(MathAMRWarning, match=r"pairs\.jsonl\.gz, line 1"):
            read_training_pairs(tmp_path / "pairs.jsonl.gz")
