"""All ways to search with one model, exact and by HNSW."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType

from mathamr_systems.experiments.systems import (
    BASELINES,
    COLBERT,
    DEPTH,
    DOC_VN,
    FUSION,
    SCORER,
    SINGLE,
    TASK1,
    TUNED,
    Way,
    colbert,
    doc_vn,
    fusion,
    single,
)

EQUAL_FUSION = f"{FUSION}, equal weights"


def _ways() -> Iterator[Way]:
    yield from (TASK1[name] for name in BASELINES)
    yield TASK1[SINGLE]
    yield Way(f"{SINGLE}, HNSW", partial(single, exact=False))
    for name, number in ((DOC_VN, DEPTH), ("doc-VN + MaxSim (k = 5000)", 5 * DEPTH)):
        settings = {"candidates": number}
        yield Way(name, partial(doc_vn, candidates=number), settings=settings)
        yield Way(f"{name}, HNSW", partial(doc_vn, candidates=number, exact=False), settings=settings)
    yield TASK1[COLBERT]
    yield Way(f"{COLBERT}, HNSW", partial(colbert, exact=False))
    yield TASK1[SCORER]
    yield TASK1[FUSION]
    yield Way(EQUAL_FUSION, partial(fusion, weight=0.5), fuses=(TUNED, COLBERT), settings={"weight": 0.5})


WAYS: Mapping[str, Way] = MappingProxyType({way.name: way for way in _ways()})
