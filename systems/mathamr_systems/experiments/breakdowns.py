"""Task 1 in parts: measures by category of topic, and recall by the share of formulas in an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mathamr_systems.math_tokens import math_tokens
from pyterrier_mathamr.arqmath import TOPIC_CATEGORIES, ARQMathCollection, parse_measure
from pyterrier_mathamr.posts import PLACEHOLDER, MathPost, post_from_html

from .measuring import Rankings, measure_by_topic, paired_test
from .workdir import RELEVANT

PRECISION: Any = parse_measure("P'@10")
SHARES = (0.0, 0.5, 0.6, 0.7)
_WORD = re.compile(r"\w+|[^\w\s]")


def measure_by_category(rankings: Rankings, qrels: pd.DataFrame, categories: pd.DataFrame) -> pd.DataFrame:
    """Measure the P'@10 of rankings on the topics of each category, and test each against the first.

    Mansouri, "Leveraging Formulae and Text for Improved Math Retrieval", 2022, tables 5.3 and 5.6.

    Args:
        rankings: name to ranking (``qid``, ``docno``, ``score``); the first is the baseline.
        qrels: ``qid``, ``docno``, ``label``.
        categories: ``qid``, and a column for each kind of category; see
            :func:`~pyterrier_mathamr.arqmath.read_topic_categories`. Topics without judgments are left out.

    Returns:
        A row for each category that has topics: ``kind``, ``category``, ``topics``, then a column for each ranking, and
        for each but the first ``<name> reject`` (two-sided paired t-test, p < .05 after Bonferroni over the rankings).
    """
    judged = categories[categories["qid"].isin(qrels["qid"])]
    by_topic = measure_by_topic(rankings, judged, qrels, [PRECISION]).astype({"value": float}).fillna({"value": 0.0})
    wide = by_topic.pivot(index="qid", columns="name", values="value")
    rows: list[dict[str, object]] = []
    for kind, values in TOPIC_CATEGORIES.items():
        for value in values:
            of_category = wide[wide.index.isin(judged.loc[judged[kind] == value, "qid"])]
            if len(of_category):
                row: dict[str, object] = {"kind": kind, "category": value, "topics": len(of_category)}
                rows.append(row | _means({name: of_category[name].to_numpy(np.float64) for name in rankings}))
    return pd.DataFrame(rows)


def _means(values: Mapping[str, npt.NDArray[np.float64]]) -> dict[str, object]:
    """Average each system's values of the same topics, and test all systems against the first."""
    baseline = next(iter(values.values()))
    row: dict[str, object] = {}
    for place, (name, own) in enumerate(values.items()):
        row[name] = float(own.mean())
        if place:
            row[f"{name} reject"] = paired_test(own, baseline, len(values) - 1).significant
    return row


def recall_by_share(
    rankings: Rankings, qrels: pd.DataFrame, shares: Mapping[str, float], least: Sequence[float] = SHARES
) -> pd.DataFrame:
    """Measure the recall of relevant answers in which more than a share of the tokens are formula tokens.

    Wang, Zheng and Kani, "MaRF", table 4. The recall of a topic is the fraction of such relevant answers (grade 2 or 3)
    that is ranked; the mean is over the topics that have any.

    Args:
        rankings: name to ranking (``qid``, ``docno``), cut where recall is measured; the first is the baseline.
        qrels: ``qid``, ``docno``, ``label``.
        shares: docno to the share of formula tokens, 0 to 1; see :func:`formula_share`. Missing answers have share 0.
        least: shares; answers must have more.

    Returns:
        A row for each share: ``share``, ``topics``, ``answers``, then a column for each ranking, and for each except
        the first ``<name> reject``, as in :func:`measure_by_category`.
    """
    relevant = qrels[qrels["label"] >= RELEVANT]
    relevant = relevant.assign(share=relevant["docno"].map(shares).fillna(0.0).astype(float))
    ranked = {name: pd.MultiIndex.from_frame(ranking[["qid", "docno"]]) for name, ranking in rankings.items()}
    rows: list[dict[str, object]] = []
    for share in least:
        some = relevant[relevant["share"] > share]
        if some.empty:
            continue
        pairs = pd.MultiIndex.from_frame(some[["qid", "docno"]])
        values = {
            name: pd.Series(pairs.isin(found)).groupby(some["qid"].to_numpy()).mean().to_numpy(dtype=np.float64)
            for name, found in ranked.items()
        }
        row: dict[str, object] = {"share": f"> {share:g}", "topics": some["qid"].nunique(), "answers": len(some)}
        rows.append(row | _means(values))
    return pd.DataFrame(rows)


def formula_share(post: MathPost) -> float:
    """Compute the share of formula tokens among all tokens of a post; 0 of an empty one.

    Tokens are the words and signs of the text, and the math tokens of formulas; the papers count the tokens of their
    language models.
    """
    formulas = sum(len(math_tokens(formula.latex)) for formula in post.formulas)
    words = len(_WORD.findall(PLACEHOLDER.sub(" ", post.text)))
    return formulas / max(1, formulas + words)


def formula_shares(collection: ARQMathCollection, docnos: Iterable[str]) -> dict[str, float]:
    """Compute the share of formula tokens of some answers of a collection, by docno."""
    wanted = set(docnos)
    return {post.id: formula_share(post_from_html(post.body)) for post in collection.answers() if post.id in wanted}
