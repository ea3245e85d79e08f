"""The context encoder: a pretrained language model, used as it is, from texts to rows of their tokens.

``[CLS]`` is brought to the end, where an index expects the document's vector; MaxSim does not depend on the order.
A causal model's last token stands there anyway. Rows are rounded to float16, so that cached ones are equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr.model.errors import ModelNotFoundError
from pyterrier_mathamr.model.inputs.batches_by_size import batches_by_size
from pyterrier_mathamr.model.inputs.devices import choose_device
from pyterrier_mathamr.model.variants.text_folder import check_encoder_folder
from pyterrier_mathamr.model.variants.text_loading import without_bars
from pyterrier_mathamr.store import Cache
from pyterrier_mathamr.systems.colbert.checkpoints import find_checkpoint
from pyterrier_mathamr.systems.colbert.encoding import Precision, mixed

from .config import MaRFConfig

Rows = npt.NDArray[np.float32]

_BUDGET = {"cpu": 8_192, "cuda": 65_536}  # most tokens of a batch, padding included
_BLOCK = 1024  # texts between two writes to the cache


class ContextEncoder:
    """A language model of transformers and its tokenizer."""

    def __init__(self, tokenizer: Any, network: Any, config: MaRFConfig, name: str) -> None:
        self.tokenizer, self.network, self.config, self.name = tokenizer, network.eval(), config, name
        self.cache: str | Path | None = None
        self.tokenizer.padding_side = self.tokenizer.truncation_side = "right"
        network.requires_grad_(False)

    @classmethod
    def load(cls, name: str, config: MaRFConfig) -> ContextEncoder:
        """Load a model by name, folder or name on the hub, weights from safetensors alone, without running its code."""
        library = require("transformers", "answers")
        folder = str(find_checkpoint(name))
        check_encoder_folder(Path(folder))
        options: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
        try:
            with without_bars():
                tokenizer = library.AutoTokenizer.from_pretrained(folder, **options)
                network = library.AutoModel.from_pretrained(
                    folder, use_safetensors=True, dtype=torch.float32, **options
                )
        except (OSError, ValueError, RuntimeError) as error:
            problem = str(error).strip().partition("\n")[0]
            reason = f"it cannot be loaded ({problem}). Give a model of transformers, its weights in safetensors"
            raise ModelNotFoundError(name, reason) from error
        return cls(tokenizer, network, config, name)

    @property
    def width(self) -> int:
        """Numbers of a row."""
        return int(self.network.config.hidden_size)

    @cached_property
    def identity(self) -> str:
        """Sha256 of the weights and the vocabulary."""
        total = hashlib.sha256(repr(sorted(self.tokenizer.get_vocab().items())).encode())
        for key, tensor in sorted(self.network.state_dict().items()):
            total.update(key.encode())
            total.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
        return total.hexdigest()

    def encode(
        self,
        texts: Sequence[str],
        *,
        query: bool = False,
        device: str | None = None,
        precision: Precision = "auto",
        verbose: bool = False,
    ) -> list[Rows]:
        """Encode texts, those of similar lengths together; memory is bounded by a batch and the result."""
        if self.cache is None:
            return self._encode(list(texts), query, device, precision, verbose)
        cache = Cache(self.cache)
        options = (
            f"{self.identity}|{query}|{self._length(query)}|{self.config.rows}|{self.config.instruction}|{precision}"
        )
        keys = {text: hashlib.blake2b(f"{options}\0{text}".encode(), digest_size=16).digest() for text in texts}
        known = cache.get(list(keys.values()))
        missing = [text for text, key in keys.items() if key not in known]
        for start in range(0, len(missing), _BLOCK):
            block = missing[start : start + _BLOCK]
            rows = self._encode(block, query, device, precision, verbose)
            new = {keys[text]: found.astype("<f2").tobytes() for text, found in zip(block, rows, strict=True)}
            cache.add(new)
            known |= new
        return [np.frombuffer(known[keys[text]], "<f2").reshape(-1, self.width).astype(np.float32) for text in texts]

    def token_ids(self, texts: list[str], query: bool) -> list[list[int]]:
        """Return the token ids of texts as they are encoded."""
        prefix = self.config.instruction if query else ""
        if not texts:
            return []
        found: list[list[int]] = self.tokenizer(
            [prefix + text for text in texts], truncation=True, max_length=self._length(query)
        )["input_ids"]
        return found

    def _length(self, query: bool) -> int:
        """The most tokens of a text: as configured, and not beyond the model's positions."""
        asked = self.config.query_length if query else self.config.document_length
        return min(asked, int(getattr(self.network.config, "max_position_embeddings", asked)))

    def _encode(
        self, texts: list[str], query: bool, device: str | None, precision: Precision, verbose: bool
    ) -> list[Rows]:
        where = choose_device(device)
        self.network.to(where)
        ids = self.token_ids(texts, query)
        found = [np.empty((0, self.width), np.float32)] * len(texts)
        batches = batches_by_size([max(1, len(of)) for of in ids], _BUDGET.get(where.type, _BUDGET["cuda"]))
        for members in progress(batches, "encoding texts", "batches", verbose=verbose):
            kept = [i for i in members if ids[i]]  # a tokenizer without special tokens has none for an empty text
            if kept:
                found_rows = self._batch([ids[i] for i in kept], where, precision)
                for i, rows in zip(kept, found_rows, strict=True):
                    found[i] = rows
        return found

    @torch.inference_mode()
    def _batch(self, ids: list[list[int]], where: torch.device, precision: Precision) -> Iterator[Rows]:
        longest = max(map(len, ids))
        padded = torch.full((len(ids), longest), self.tokenizer.pad_token_id or 0)
        mask = torch.zeros(len(ids), longest, dtype=torch.int64)
        for row, of in enumerate(ids):
            padded[row, : len(of)] = torch.tensor(of)
            mask[row, : len(of)] = 1
        with mixed(where, precision):
            states = self.network(input_ids=padded.to(where), attention_mask=mask.to(where)).last_hidden_state
        rows = states.to("cpu", torch.float16).float().numpy()
        return (self._ordered(found[: len(of)], of) for found, of in zip(rows, ids, strict=True))

    def _ordered(self, rows: Rows, ids: list[int]) -> Rows:
        if ids[0] == self.tokenizer.cls_token_id:
            rows = np.roll(rows, -1, axis=0)
        return rows[-1:].copy() if self.config.rows == "last" else rows.copy()
