"""Query reduction: weights learned on known items, and searches with reduced questions.

::

    training question ──▶ each word and formula as a query ──▶ its gain for right and wrong answers ──▶ weights
    validation question ──▶ how many words and formulas are kept; which features help
    test question, topics ──▶ whole and reduced, by structural search and by the tuned BM25
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt
import torch

from mathamr_systems import QueryReduction, StructuralSearch
from mathamr_systems.experiments.measuring import (
    FEW_JUDGED,
    KNOWN_ITEM_MEASURES,
    TimedPipeline,
    means_table,
    measure_by_topic,
    paired_test,
    paired_tests,
    rounded,
    time_queries,
)
from mathamr_systems.experiments.report import Report
from mathamr_systems.experiments.stages import to_stderr
from mathamr_systems.experiments.systems import DEPTH, TUNED, AnswerParts
from mathamr_systems.experiments.workdir import KNOWN_ITEM, Artifacts
from mathamr_systems.query_reduction import REDUCTION_WEIGHTS, KeyWeights, key_terms
from pyterrier_mathamr._common.ids import pseudo_random
from pyterrier_mathamr._common.types import DocNo
from pyterrier_mathamr.arqmath import TASK1_MEASURES
from pyterrier_mathamr.arqmath.collection import Split
from pyterrier_mathamr.arqmath.measures import PAPER_NAMES
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.graph.structure import layout_of
from pyterrier_mathamr.posts import MathPost, PostFormula
from pyterrier_mathamr.sparse import BM25Index
from pyterrier_mathamr.sparse.tokens import word_tokens
from studies.formulas.indexes import approach0

from .rows import STRUCTURAL, STRUCTURAL_ROW, WORDS

Floats = npt.NDArray[np.float64]

QUESTIONS = 500
"""Training questions, and at most as many of validation, with the smallest SHA-256 of their id."""
WRONG = 100
"""Answers of other questions that a question is compared with, the first of structural search."""
KINDS = ("word", "formula")
FEATURES = {
    "word": ("idf", "title", "length", "position", "count", "root"),
    "formula": ("symbols", "title", "position", "count", "root"),
}
"""The package's features and ``root``: 1 / (1 + distance from the root of the sentence in the AMR), 0 if not in it."""
CHOSEN = {kind: tuple(of) for kind, of in REDUCTION_WEIGHTS.items()}
BUDGETS = [(words, formulas) for words in (5, 8, 12, 20, 30, None) for formulas in (1, 2, 3, 5, None)]
PENALTY = 1e-3
WHOLE, REDUCED = "whole question", "reduced"
WEIGHTS, ABLATION, KEPT, JUDGED, KNOWN, TESTS, TIME = (
    "Learned weights",
    "Features",
    "Words and formulas that are kept",
    "Judged topics",
    "Known items",
    "Tests",
    "Time of a query",
)


class Example(NamedTuple):
    """A question with the answers that it is compared with, right ones first."""

    features: Mapping[str, Floats]  # of its words [w, f] and of its formulas [n, f], in the order of FEATURES
    gains: Mapping[str, Floats]  # their contributions to the scores of answers, [answers, w] and [answers, n]
    right: int


# Learning ------------------------------------------------------------------------------------------------------------


def examples(shared: Artifacts, search: StructuralSearch, split: Split, most: int | None = None) -> list[Example]:
    """Search with each word and formula of a split's questions; the score of a question is their sum."""
    questions = shared.questions(split)
    right = questions.qrels.groupby("qid")["docno"].agg(list)
    rows = [row for row in questions.topics.to_dict("records") if row["qid"] in right]
    rows.sort(key=lambda row: pseudo_random(row["qid"]))
    snapshot, found = search.bm25_index.snapshot(), []
    numbers = {docno: number for number, docno in enumerate(snapshot.docnos(np.arange(len(snapshot))))}
    for row in rows[:most]:
        terms = key_terms(snapshot.read_query(row), snapshot)
        if not any(terms.values()):
            continue
        near = _nearness(questions.graphs.get(row["qid"]))
        features, gains = dict[str, Floats](), dict[str, Floats]()
        for kind, form in zip(KINDS, ("{}", "${}$"), strict=True):
            own = terms[kind]
            single = pd.DataFrame({"qid": map(str, range(len(own))), "query": [form.format(of["text"]) for of in own]})
            ranking = search(single.astype(str)) if own else pd.DataFrame(columns=["qid", "docno", "score"])
            gained = np.zeros((len(numbers), len(own)))
            gained[ranking["docno"].map(numbers).astype(int), ranking["qid"].astype(int)] = ranking["score"]
            gains[kind] = gained * ([len(of["written"]) for of in own] if kind == "word" else 1.0)
            values = [
                [{**of, "root": near.get(_key(of["text"], kind), 0.0)}[name] for name in FEATURES[kind]] for of in own
            ]
            features[kind] = np.array(values, dtype=np.float64).reshape(len(own), len(FEATURES[kind]))
        answers = [numbers[docno] for docno in right[row["qid"]]]
        scores = sum(gains[kind].sum(axis=1) for kind in KINDS)
        order = np.argsort(-scores, kind="stable")
        kept = [*answers, *order[~np.isin(order, answers)][:WRONG]]
        found.append(Example(features, {kind: gains[kind][kept] for kind in KINDS}, len(answers)))
    return found


def _key(text: str, kind: str) -> str:
    return text if kind == "formula" else next(iter(word_tokens(text, WORDS)), "")


def _nearness(graph: MathAMRGraph) -> dict[str, float]:
    """Map stems of concepts and LaTeX of formulas to 1 / (1 + edges from the root of the sentence)."""
    layout, below = layout_of(graph.amr, graph.n_formulas), dict[int, list[int]]()
    for source, role, target in graph.amr.edges:
        if role not in (":opt", ":slt"):
            below.setdefault(source, []).append(target)
    depths, waiting = dict.fromkeys(layout.roots, 0), deque(layout.roots)
    while waiting:
        node = waiting.popleft()
        for target in below.get(node, ()):
            if target not in depths:
                depths[target] = depths[node] + 1
                waiting.append(target)
    near = dict[str, float]()
    latex = dict(zip(layout.placeholders, graph.latex, strict=False))
    for node, depth in sorted(depths.items(), key=lambda each: each[1]):
        stems = [latex[node]] if node in latex else word_tokens(graph.amr.labels[node], WORDS)
        for stem in stems:
            near.setdefault(stem, 1 / (1 + depth))
    return near


def fit(found: Sequence[Example], chosen: Mapping[str, Sequence[str]]) -> KeyWeights:
    """Learn the weights of some features.

    A word or formula with the score s adds σ(s + bias) times its contribution to the question; the weights minimize
    the cross-entropy of the right answer among the wrong ones, with the scale of scores learned, too.
    """
    padded = {kind: _padded(found, kind, _columns(chosen, kind)) for kind in KINDS}
    weights = {kind: torch.zeros(1 + len(chosen[kind]), dtype=torch.float64, requires_grad=True) for kind in KINDS}
    scale = torch.tensor(-1.5, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([*weights.values(), scale], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        scores = torch.zeros((), dtype=torch.float64)
        for kind, (features, gains) in padded.items():
            kept = torch.sigmoid(features @ weights[kind][1:] + weights[kind][0])
            scores = scores + (gains * kept[:, None]).sum(dim=2)
        loss: torch.Tensor = -torch.log_softmax(scores * scale.exp(), dim=1)[:, 0].mean()
        loss = loss + PENALTY * sum(own[1:].square().sum() for own in weights.values())
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    learned = {
        kind: dict(zip(("bias", *chosen[kind]), map(float, weights[kind].detach()), strict=True)) for kind in KINDS
    }
    return {**learned, "score": {"scale": float(scale.detach().exp())}}


def _columns(chosen: Mapping[str, Sequence[str]], kind: str) -> list[int]:
    return [FEATURES[kind].index(name) for name in chosen[kind]]


def _padded(found: Sequence[Example], kind: str, columns: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Stack features [pairs, terms, f] and gains [pairs, answers, terms], one pair for each right answer."""
    pairs = [(one, right) for one in found for right in range(one.right)]
    most = max(len(one.features[kind]) for one in found)
    answers = 1 + min(len(one.gains[kind]) - one.right for one in found)
    features, gains = np.zeros((len(pairs), most, len(columns))), np.zeros((len(pairs), answers, most))
    for row, (one, right) in enumerate(pairs):
        terms = len(one.features[kind])
        features[row, :terms] = one.features[kind][:, columns]
        gains[row, :, :terms] = one.gains[kind][[right, *range(one.right, one.right + answers - 1)]]
    return torch.from_numpy(features), torch.from_numpy(gains)


def _term_scores(one: Example, weights: KeyWeights, kind: str) -> Floats:
    own = {name: weight for name, weight in weights[kind].items() if name != "bias"}
    scores: Floats = one.features[kind][:, _columns({kind: list(own)}, kind)] @ np.array(list(own.values()))
    return scores


def losses(found: Sequence[Example], weights: KeyWeights) -> Floats:
    """Compute the cross-entropy of each question, the mean over its right answers."""
    values = []
    for one in found:
        scores = np.zeros(len(one.gains["word"]))
        for kind in KINDS:
            kept = 1 / (1 + np.exp(-_term_scores(one, weights, kind) - weights[kind]["bias"]))
            scores += one.gains[kind] @ kept
        scores *= weights["score"]["scale"]
        others = np.logaddexp.reduce(scores[one.right :])
        values.append(np.mean([np.logaddexp(right, others) - right for right in scores[: one.right]]))
    return np.array(values)


def reciprocal_ranks(
    found: Sequence[Example], weights: KeyWeights | None, budget: tuple[int | None, int | None]
) -> Floats:
    """Return 1 / rank of the first right answer of each reduced question, 0 after the tenth; whole without weights."""
    values = []
    for one in found:
        scores = np.zeros(len(one.gains["word"]))
        for kind, most in zip(KINDS, budget, strict=True):
            of_terms = np.zeros(one.gains[kind].shape[1]) if weights is None else _term_scores(one, weights, kind)
            scores += one.gains[kind][:, np.argsort(-of_terms, kind="stable")[:most]].sum(axis=1)
        best = scores[: one.right].max()
        rank = 1 + int((scores[one.right :] > best).sum())
        values.append(1 / rank if best > 0 and rank <= 10 else 0.0)
    return np.array(values)


def ablations() -> dict[str, dict[str, tuple[str, ...]]]:
    """Name sets of features: the package's, leave-one-out sets, and extended ones."""
    found = {"as in the package": CHOSEN}
    for kind in KINDS:
        for name in CHOSEN[kind]:
            found[f"without {name} of a {kind}"] = {**CHOSEN, kind: tuple(of for of in CHOSEN[kind] if of != name)}
    for name in ("position", "count"):
        found[f"with {name} of a word"] = {**CHOSEN, "word": (*CHOSEN["word"], name)}
    found["with root in the AMR"] = {kind: (*of, "root") for kind, of in CHOSEN.items()}
    return found


# Measuring -----------------------------------------------------------------------------------------------------------

Query = Callable[[pd.DataFrame], pd.DataFrame]


class _Remembering(StructuralSearch):
    """Searches with each distinct formula once for all ways, with trees from its LaTeX, as in a query."""

    def _gained(self, post: MathPost) -> list[tuple[PostFormula, dict[DocNo, float]]]:
        known: dict[str, list[tuple[PostFormula, dict[DocNo, float]]]] = self.__dict__.setdefault("_known", {})
        found = []
        for latex in dict.fromkeys(formula.latex for formula in post.formulas):
            if latex not in known:
                known[latex] = super()._gained(MathPost("FORMULA_0", (PostFormula(latex),)))
            found += known[latex]
        return found


def queries(index: BM25Index, weights: KeyWeights, words: int | None, formulas: int | None) -> dict[str, Query]:
    """Name the ways to make a query of a topic: the whole question, baselines, and query reduction."""
    longest: KeyWeights = {"word": {}, "formula": {"symbols": 1.0}}
    rare: KeyWeights = {"word": {"idf": 1.0}, "formula": {}}
    title: Query = lambda topics: topics.assign(query=topics["title"]).drop(columns=["title", "body"])  # noqa: E731

    def with_longest(topics: pd.DataFrame) -> pd.DataFrame:
        found = QueryReduction(index, 0, 3, weights=longest)(topics)
        words = QueryReduction(index, None, 0)(title(topics))["query"]
        queries: pd.DataFrame = found.assign(query=words + " " + found["query"])
        return queries

    return {
        WHOLE: lambda topics: topics,
        "title": title,
        "words of the title, 3 longest formulas": with_longest,
        "20 words by idf, all formulas": QueryReduction(index, 20, None, weights=rare),
        REDUCED: QueryReduction(index, words, formulas, weights=weights),
        "words reduced, all formulas": QueryReduction(index, words, None, weights=weights),
        "all words, formulas reduced": QueryReduction(index, None, formulas, weights=weights),
    }


def run_reduction(
    folder: str | Path, workdir: str | Path, *, years: Sequence[str] = ("2020", "2022"), verbose: bool = True
) -> Report:
    """Learn the weights of query reduction on known items, and measure reduced questions.

    Args:
        folder: an ARQMath folder.
        workdir: where indexes, examples, tables and ``report.md`` are kept; finished stages are not repeated.
        years: whose topics and judgments are measured.
        verbose: report each stage on stderr.
    """
    shared = Artifacts(folder, Path(workdir), say=to_stderr if verbose else None, verbose=verbose)
    parts = AnswerParts(shared, years[0], tuple(years))
    path = parts.stage("answers-words", lambda path: _index_words(shared, path), tokens=WORDS.to_dict())
    search = StructuralSearch(approach0(shared), BM25Index(path), DEPTH, store=shared.formulas)
    training, validation = (_kept(parts, search, split) for split in ("train", "validation"))
    sets = ablations()
    learned = {name: fit(training, chosen) for name, chosen in sets.items()}
    weights = learned["as in the package"]
    means = {budget: float(reciprocal_ranks(validation, weights, budget).mean()) for budget in BUDGETS}
    budget = max(means, key=lambda each: means[each])
    plain = {kind: {name: of for name, of in weights[kind].items() if name != "bias"} for kind in KINDS}
    ways = queries(search.bm25_index, plain, *budget)
    values, speed = _measured(parts, search, ways), _timed(parts, ways)
    return _report(shared, years, learned, validation, budget, means, values, speed).write(shared.workdir / "reduction")


def _index_words(shared: Artifacts, path: Path) -> None:
    BM25Index(path).indexer("overwrite", tokens=WORDS).index(shared.answer_documents())


def _kept(parts: AnswerParts, search: StructuralSearch, split: Split) -> list[Example]:
    def build(path: Path) -> None:
        path.write_bytes(pickle.dumps(examples(parts.shared, search, split, QUESTIONS)))

    settings: dict[str, Any] = {
        "questions": QUESTIONS,
        "wrong": WRONG,
        "features": {kind: list(of) for kind, of in FEATURES.items()},
    }
    found: list[Example] = pickle.loads(parts.stage(f"reduction-{split}", build, **settings).read_bytes())
    return found


def _measured(parts: AnswerParts, known: StructuralSearch, ways: Mapping[str, Query]) -> pd.DataFrame:
    """Measure all ways on the topics and on known items, whose own question is not in front of the answers."""
    found = []
    for of in (*parts.years, KNOWN_ITEM):
        own = parts.at(of=of)
        topics, qrels, _ = own.found
        of_threads = known if own.known else STRUCTURAL_ROW.make(own)
        structural = _Remembering(**{**of_threads.parameters(), "store": None})
        measures = KNOWN_ITEM_MEASURES if own.known else TASK1_MEASURES
        systems: dict[str, pt.Transformer] = {STRUCTURAL: structural, TUNED: parts.shared.tuned.retriever(DEPTH)}
        topics = topics[["qid", "title", "body"]]
        rankings = {
            f"{name}, {way}": system(make(topics)) for name, system in systems.items() for way, make in ways.items()
        }
        table = measure_by_topic(rankings, topics, qrels, measures).fillna({"value": 0.0})
        found.append(table.assign(qid=f"{of} " + table["qid"], known=own.known))
    return pd.concat(found, ignore_index=True)


def _timed(parts: AnswerParts, ways: Mapping[str, Query]) -> pd.DataFrame:
    """Search for topics one at a time, with whole and with reduced questions."""
    structural = StructuralSearch(**{**STRUCTURAL_ROW.make(parts).parameters(), "store": None})
    systems = {STRUCTURAL: structural, TUNED: parts.shared.tuned.retriever(DEPTH)}
    pipelines = {
        f"{name}, {way}": TimedPipeline(pt.apply.generic(ways[way]) >> system)
        for name, system in systems.items()
        for way in (WHOLE, REDUCED)
    }
    return time_queries(pipelines, parts.found.topics[["qid", "title", "body"]])


def _report(
    shared: Artifacts,
    years: Sequence[str],
    learned: Mapping[str, KeyWeights],
    validation: Sequence[Example],
    budget: tuple[int | None, int | None],
    means: Mapping[tuple[int | None, int | None], float],
    values: pd.DataFrame,
    speed: pd.DataFrame,
) -> Report:
    first, *_ = learned.values()
    rows = [(kind, name, round(of, 2)) for kind in KINDS for name, of in first[kind].items()]
    usual, lines = losses(validation, first), []
    for name, weights in learned.items():
        own = losses(validation, weights)
        mean = float(reciprocal_ranks(validation, weights, budget).mean())
        lines.append((name, float(own.mean()), paired_test(own, usual, 1).p, mean))
    whole = float(reciprocal_ranks(validation, None, (None, None)).mean())
    kept = [(_all(words), _all(formulas), mean) for (words, formulas), mean in means.items()]
    names, tests = list(dict.fromkeys(values["name"])), []
    tables = {}
    for caption, known, measures in ((JUDGED, False, TASK1_MEASURES), (KNOWN, True, KNOWN_ITEM_MEASURES)):
        own_values = values[values["known"] == known]
        columns = list(map(str, measures))
        tables[caption] = means_table(own_values, names, columns, years=() if known else years)
        pairs = [(name, f"{name.partition(', ')[0]}, {WHOLE}") for name in names if not name.endswith(WHOLE)]
        for measure in columns[:3]:
            of_measure = rounded(paired_tests(own_values, pairs, measure))
            tests.append(of_measure.assign(measure=PAPER_NAMES.get(measure, measure)))
    return Report(
        title=f"Query reduction on {shared.collection.path.name}",
        settings={"years": list(years), "training questions": QUESTIONS, "wrong answers": WRONG},
        stages=tuple(shared.stages.records),
        tables={
            JUDGED: tables[JUDGED],
            KNOWN: tables[KNOWN],
            TESTS: pd.concat(tests, ignore_index=True),
            TIME: speed.drop(columns=["encoding ms", "search ms"]),
            WEIGHTS: pd.DataFrame(rows, columns=["kind", "feature", "weight"]),
            KEPT: pd.DataFrame(kept, columns=["words", "formulas", "MRR@10"]),
            ABLATION: pd.DataFrame(lines, columns=["features", "loss", "p", "MRR@10"]),
        },
        about={
            JUDGED: FEW_JUDGED,
            KNOWN: "Test questions look for their own answers, whose question is not in front of them.",
            TESTS: "Against the whole question by the same system: paired t-tests, p corrected within a measure.",
            TIME: f"{speed['queries'].max()} topics of {years[0]}, one at a time, from the text to the ranking.",
            KEPT: f"MRR@10 of validation questions among their right answers and {WRONG} others; whole questions have "
            f"{whole:.4f}. The best is measured: {_all(budget[0])} words and {_all(budget[1])} formulas.",
            ABLATION: "Cross-entropy of validation questions with soft weights of words and formulas, p of its "
            "difference from the first row (paired t-test), and MRR@10 with the sizes of the table above.",
        },
        values={"by-topic": values},
    )


def _all(number: int | None) -> str:
    return "all" if number is None else str(number)
