"""The text encoder and its cache: each text once, blocks that survive a kill, and errors with a remedy."""

import sys
import time

import numpy as np
import pytest
from text_encoders import Broken, Words

from pyterrier_mathamr._common.errors import ConfigError, MissingExtraError
from pyterrier_mathamr.model import ModelNotFoundError, TextEncoder
from pyterrier_mathamr.store import OtherArtifactError


def test_each_distinct_text_is_encoded_once_and_the_order_is_kept():
    text = TextEncoder(Words())
    rows = text.encode(["b", "a", "b", ""])
    assert text.model.seen == {"a": 1, "b": 1, "": 1}
    assert rows.dtype == np.float16
    assert np.array_equal(rows[0], rows[2])
    assert np.linalg.norm(rows.astype(np.float64), axis=1) == pytest.approx(1, abs=1e-3)
    assert np.array_equal(rows[[1]], text.encode(["a"]))
    assert text.encode([]).shape[0] == 0


def test_a_cache_gives_later_runs_the_same_numbers_without_the_encoder(tmp_path):
    texts = [f"text {i}" for i in range(1200)] + ["::", "ü\n"]  # more than one block
    first = TextEncoder(Words(), cache=tmp_path / "new" / "cache").encode(texts)
    assert np.array_equal(first, TextEncoder(Words()).encode(texts))
    later = TextEncoder(Broken(), cache=tmp_path / "new" / "cache")
    type(later.model).__qualname__ = "Words"
    assert np.array_equal(first[::-1], later.encode(texts[::-1]))
    with pytest.raises(AssertionError, match="asked for"):
        later.encode(["another"])


def test_blocks_that_were_done_before_a_kill_are_kept(tmp_path):
    class Dies(Words):
        def encode(self, texts):
            if self.seen:
                raise KeyboardInterrupt
            return super().encode(texts)

    Dies.__qualname__ = "Words"
    texts = [f"text {i:04}" for i in range(2000)]
    with pytest.raises(KeyboardInterrupt):
        TextEncoder(Dies(), cache=tmp_path / "cache").encode(texts)
    again = TextEncoder(Words(), cache=tmp_path / "cache")
    again.encode(texts)
    assert again.model.seen.total() == 2000 - 1024


def test_a_file_that_is_not_a_cache_is_refused(tmp_path):
    (tmp_path / "cache").write_text("no database, but long enough to look at" * 10)
    with pytest.raises(OtherArtifactError, match="not a cache"):
        TextEncoder(Words(), cache=tmp_path / "cache").encode(["a"])


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pyterrier-mathamr\[text\]"):
        TextEncoder("some/other").encode(["a"])
    with pytest.raises(ConfigError, match="precision"):
        TextEncoder(precision="float64")


@pytest.mark.parametrize("offline", [True, False])
def test_weights_that_are_not_here_are_one_error_at_once(monkeypatch, tmp_path, offline):
    """The hub is asked once; transformers by itself asks again for more than a minute."""
    pytest.importorskip("sentence_transformers")
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    started = time.monotonic()
    with pytest.raises(ModelNotFoundError, match=r"some/other.*not on this machine.*a copy"):
        TextEncoder("some/other", device="cpu").encode(["a"])
    assert time.monotonic() - started < 30
