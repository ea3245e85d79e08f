"""Folders of systems that were taken out are refused by name."""

import json

import pyterrier as pt
import pytest
from click.testing import CliRunner

from pyterrier_mathamr.cli import main
from pyterrier_mathamr.store import FormatError


def test_a_folder_of_graph_terms_is_refused_since_they_were_removed(tmp_path) -> None:
    (tmp_path / "pt_meta.json").write_text(json.dumps({"type": "sparse_index", "format": "mathamr_graph_terms"}))
    with pytest.raises(FormatError, match="graph terms, which were removed"):
        pt.Artifact.load(str(tmp_path))
    result = CliRunner().invoke(main, ["verify", str(tmp_path)])
    assert result.exit_code == 1
    assert "removed" in result.output
