"""Search for a typed query: its graph, its vectors by the model of the index, and the retriever, as one call."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError

if TYPE_CHECKING:
    from pyterrier_mathamr.graph import GraphBuilder
    from pyterrier_mathamr.model import MathAMR


def search_text(
    index: Any, query: str, qid: str, model: MathAMR | str | Path | None, graphs: GraphBuilder | None, num_results: int
) -> pd.DataFrame:
    """Search an index for one typed query; see ``VectorIndex.search``."""
    from pyterrier_mathamr.graph import GraphBuilder

    retriever = index.retriever(num_results=num_results)
    builder = pt.inspect.transformer_apply_attributes(graphs or GraphBuilder(), side="auto", queries=index.QUERIES)
    encode = builder >> _model_of(index, model).query_encoder()
    pipeline: pt.Transformer = encode >> retriever
    found = pipeline(pd.DataFrame({"qid": [qid], "query": [query]}))
    result: pd.DataFrame = found[["qid", "query", *retriever.gives, "score", "rank"]]
    return result


def _model_of(index: Any, model: MathAMR | str | Path | None) -> MathAMR:
    """Return the given model, or open the bundled one that the index names."""
    from pyterrier_mathamr.model import MathAMR, ModelNotFoundError

    if isinstance(model, MathAMR):
        return model
    if model is not None:
        return _opened(str(model))
    name = index.model
    try:
        return _opened(str(name).partition("@")[0])
    except ModelNotFoundError as error:
        reason = f"{name!r}, which is not bundled" if name else "a model that it does not name"
        allowed = f"the model of the index, as an object, a name or a folder: {index.path} was made by {reason}"
        raise ConfigError("model", None, allowed) from error


@lru_cache(maxsize=1)
def _opened(name: str) -> MathAMR:
    """Open a model once for all typed queries."""
    from pyterrier_mathamr.model import MathAMR

    return MathAMR.from_pretrained(name)
