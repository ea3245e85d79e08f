"""What the transformers over an index share: the index and its options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Literal

import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.parameters import COUNT, Rule, one_of
from pyterrier_mathamr._common.transformers import Leaf, Transformer
from pyterrier_mathamr.index.protocols import SearchableIndex

Search = Literal["exact", "approximate"]

_SEARCHES = {None: None, "exact": "exact", "approximate": "approximate", "hnsw": "approximate"}


def search_of(exact: bool | None, search: str | None) -> Search:
    """Read the two options for exact or approximate search."""
    if search not in _SEARCHES:
        raise ConfigError("search", search, "'exact' or 'approximate'")
    asked: Search | None = _SEARCHES[search]  # type: ignore[assignment]
    if exact is not None:
        from_exact: Search = "exact" if exact else "approximate"
        if asked not in (None, from_exact):
            raise ConfigError("search", search, f"the same as exact={exact}, or only one of the two")
        return from_exact
    return asked or "exact"


def check_device(device: object) -> str | None:
    """Read the option ``device``."""
    if device in (None, "cpu"):
        return None
    if not isinstance(device, str) or not re.fullmatch(r"cuda(:\d+)?", device):
        raise ConfigError("device", device, "None, 'cpu' or 'cuda'")
    import torch

    found = torch.cuda.device_count()
    if int(device.partition(":")[2] or 0) >= found:
        raise ConfigError("device", device, f"None or 'cpu': torch finds {found} CUDA devices here")
    return device


class IndexTransformer(Leaf, Transformer):
    """A transformer over an index."""

    checks: ClassVar[Mapping[str, Rule]] = {
        "num_results": COUNT,
        "batch_size": COUNT,
        "candidates": COUNT,
        "hits": COUNT,
        "hnsw_ef": COUNT,
        "search": one_of("exact", "approximate"),
        "vectors": one_of("all", "document"),
    }

    def __init__(self, index: SearchableIndex) -> None:
        super().__init__()
        self.index = index

    def __setattr__(self, name: str, value: object) -> None:
        if name == "exact" and value is not None:
            name, value = "search", "exact" if value else "approximate"
        if name == "search":  # an attribute of that name would hide the method of every transformer
            name, value = "_search", _SEARCHES.get(value, value)  # type: ignore[call-overload]
        if name == "device":
            check_device(value)
        super().__setattr__(name, value)

    @property
    def exact(self) -> bool:
        """Whether the search is exact; setting it sets the option ``search``."""
        return bool(vars(self).get("_search") == "exact")

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Return the transformer that keeps ``k`` documents, itself where it keeps no more, ``None`` below 1."""
        kept = getattr(self, "num_results", None)
        if kept is not None and kept <= k:
            return self
        return pt.inspect.transformer_apply_attributes(self, num_results=k) if k >= 1 else None
