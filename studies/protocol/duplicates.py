"""Pairs of duplicate posts: the engine's error, fitted on one half of the labels and measured on the other.

The labels are links of duplicates between the questions of an ARQMath folder, and copies of its posts with renamed
variables. A pair of questions without a link counts as wrong, although many are the same question: the figure
is an upper bound of the error. Halves are by a hash of the first post.
"""

from __future__ import annotations

import hashlib
import random
import re
import shutil
from html import unescape
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import minimize

from mathamr_systems.experiments.report import Report
from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.engine import EngineSnapshot, SearchEngine
from pyterrier_mathamr.engine.duplicates import SamenessWeights, candidates, compared, similarities

COPIES = 200
COPY = "copy of "
ERRORS = (0.01, 0.05, 0.1, 0.2, 0.5, 0.7)
LINKED, COPIED, FITTED = "Linked duplicates", "Copies with renamed variables", "Weights"
_FORMULA = re.compile(r'(<span class="math-container"[^>]*>)([^<]*)(?=</span>)')
_SYMBOL = re.compile(r"\\(?:text|textrm|mathrm|operatorname|begin|end|mbox)\*?\s*\{[^}]*\}|\\[A-Za-z]+|[A-Za-z]")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

Floats = npt.NDArray[np.float64]
Pair = tuple[str, str]


def renamed(html: str, chooser: random.Random) -> str:
    """Write a post with other letters for its variables, consistently throughout the post."""
    letters = chooser.sample(_LETTERS, len(_LETTERS))
    names = dict(zip(_LETTERS + _LETTERS.upper(), [*letters, *map(str.upper, letters)], strict=True))

    def of_formula(match: re.Match[str]) -> str:
        return match[1] + _SYMBOL.sub(lambda symbol: names.get(symbol[0], symbol[0]), match[2])

    return _FORMULA.sub(of_formula, html)


def run_duplicates(engine: str | Path, folder: str | Path, workdir: str | Path, *, verbose: bool = True) -> Report:
    """Fit and measure the error of pairs of duplicates.

    Args:
        engine: a search engine of the posts of the folder; it is copied, and copies of posts are added to the copy.
        folder: an ARQMath folder with links.
        workdir: where the copy, tables and ``report.md`` are kept.
        verbose: show progress.
    """
    at = _with_copies(Path(engine), Path(workdir) / "copied.engine", verbose).snapshot()
    linked, related = _links(at, ARQMathCollection(folder))
    copies = {_pair(docno.removeprefix(COPY), docno) for docno in at.docnos() if docno.startswith(COPY)}
    pairs = [_pair(*pair) for pair in candidates(at.indexes, at.threads, at.docnos())]
    features = compared(at.indexes, pairs)
    questions = {post.docno for post in at.indexes.posts if post.title and not post.docno.startswith(COPY)}
    known = np.array([pair in copies or (set(pair) <= questions and pair not in related) for pair in pairs])
    same = np.array([pair in copies or pair in linked for pair in pairs])
    half = np.array([_half(pair) for pair in pairs])
    weights = {test: fitted(features[known & (half != test)], same[known & (half != test)]) for test in (0, 1)}
    error = 1 - np.where(half == 0, similarities(features, weights[0]), similarities(features, weights[1]))
    shipped = fitted(features[known], same[known])
    plain = np.array([pair not in copies for pair in pairs])
    tables = {
        LINKED: _measured(error[known & plain], same[known & plain], len(linked)),
        COPIED: _measured(error[known & ~plain], same[known & ~plain], len(copies)),
        FITTED: pd.DataFrame([shipped, *weights.values()]).assign(fitted_to=["both halves", "half 1", "half 0"]),
    }
    return Report(
        title="Duplicate posts",
        settings={"engine": Path(engine).name, "model": at.options.model, "posts": len(at), "pairs": len(pairs)},
        stages=[],
        tables=tables,
        about={LINKED: "Pairs of questions, each half with the weights of the other; a pair without a link is wrong."},
        values={"pairs": pd.DataFrame(pairs, columns=["a", "b"]).assign(error=error, same=same, known=known)},
    ).write(Path(workdir))


def fitted(features: Floats, same: npt.NDArray[np.bool_]) -> SamenessWeights:
    """Fit the logistic regression, with a little of the sum of squares so that it is finite."""
    design = np.column_stack([np.ones(len(features)), features])
    sign = np.where(same, 1.0, -1.0)

    def loss(weights: Floats) -> float:
        return float(np.logaddexp(0, -sign * (design @ weights)).sum() + 0.005 * (weights[1:] ** 2).sum())

    bounds = [(None, None), *[(0.0, None)] * features.shape[1]]
    found = minimize(loss, np.zeros(design.shape[1]), bounds=bounds, method="L-BFGS-B")
    return SamenessWeights(*map(float, found.x))


def _with_copies(engine: Path, path: Path, verbose: bool) -> SearchEngine:
    """Copy an engine and add copies of some posts with renamed variables."""
    if path.exists():
        return SearchEngine(path)
    shutil.copytree(engine, path)
    copied, chooser = SearchEngine(path), random.Random(0)
    at = copied.snapshot()
    with_formulas = [post for post in at.indexes.posts if post.html.count("math-container") > 1 and not post.parent]
    posts = chooser.sample(with_formulas, min(COPIES, len(with_formulas)))
    strip = re.compile(r' id="[^"]*"')
    records = []
    for post in posts:
        seed = chooser.random()
        title, html = (renamed(strip.sub("", text), random.Random(seed)) for text in (post.title, post.html))
        records.append({"docno": COPY + post.docno, "title": _with_dollars(title), "html": html})
    copied.add(records, verbose=verbose)
    return copied


def _with_dollars(html: str) -> str:
    """Write a title as text with formulas between dollars."""
    text = _FORMULA.sub(lambda match: f"{match[1]}${match[2]}$", html)
    return unescape(re.sub(r"<[^>]*>", "", text))


def _links(at: EngineSnapshot, collection: ARQMathCollection) -> tuple[set[Pair], set[Pair]]:
    """Return linked duplicates, two of one question, too, and related questions, which are left out."""
    clusters: dict[str, set[str]] = {}
    related: set[Pair] = set()
    for link in collection.links():
        if link.kind == "duplicate":
            clusters.setdefault(link.related_id, {link.related_id}).add(link.question_id)
        else:
            related.add(_pair(link.question_id, link.related_id))
    found = {
        _pair(a, b) for cluster in clusters.values() for a in cluster for b in cluster if a < b and a in at and b in at
    }
    return found, related - found


def _pair(one: str, other: str) -> Pair:
    return (one, other) if one < other else (other, one)


def _half(pair: Pair) -> int:
    return hashlib.sha256(min(name.removeprefix(COPY) for name in pair).encode()).digest()[0] % 2


def _measured(error: Floats, same: npt.NDArray[np.bool_], every: int) -> pd.DataFrame:
    """Count the pairs up to each error, how many are right, and how many of all right ones they are."""
    rows = []
    for most in ERRORS:
        chosen = error <= most
        right, stated = int((same & chosen).sum()), float(error[chosen].mean()) if chosen.any() else np.nan
        share = right / chosen.sum() if chosen.any() else np.nan
        rows.append((most, int(chosen.sum()), right, share, stated, right / every if every else np.nan))
    columns = ["error up to", "pairs", "right", "share right", "mean error stated", "found of all"]
    return pd.DataFrame(rows, columns=columns)
