"""Forms of the engine's score, fitted and measured on questions of several kinds of text.

::

    file of pairs, ARQMath ── read_kind ──▶ questions of two parts, and answers
                              parts_of ───▶ BM25 and MaxSim of each candidate
    FORMS ── fit on the validation part of all kinds ──▶ measured on the test part

Each question searches for its own answers, as written and with other letters in its formulas. The parts are by a hash
of the question's id, as for ARQMath's known items. For each form, one weight is fitted, and an exponent if the weight
depends on the query; in forms with structures, the weight of structures, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from ir_measures import RR

from mathamr_systems.experiments.beir import TextArtifacts, TextCollection
from mathamr_systems.experiments.measuring import means_table, measure_by_topic, paired_tests, rounded
from mathamr_systems.experiments.report import Report
from mathamr_systems.experiments.stages import Stages, to_stderr
from mathamr_systems.experiments.systems import TUNED
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.ids import pseudo_random
from pyterrier_mathamr.arqmath import ARQMathCollection, known_item_split, read_pair_file
from pyterrier_mathamr.engine.ranking import HALF, fitted_weights
from pyterrier_mathamr.model import DEFAULT_MODEL, MathAMR
from pyterrier_mathamr.posts import plain_text, post_from_html
from pyterrier_mathamr.store import file_fingerprint
from studies.notation.letters import renamed

from .parts import Parts, parts_of

QUESTIONS, ANSWERS = 150, 1500
"""Of a kind of text: questions of each part, and answers."""
PARTS = ("validation", "test")
TITLE, RENAMED = " (title)", " (renamed)"
"""Suffixes of the id of a question whose query is only its title, or has other letters."""
OTHER_LETTERS = ", renamed"
"""Suffix of the name of a kind of text whose questions have other letters."""
MEASURE = RR @ 10
ODDS = tuple(2.0 ** (step / 2) for step in range(-18, 13))
"""Weights of words, where vectors have 1."""
STRUCTURES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0)
"""Weights of structures, likewise."""
EXPONENTS = (-1.0, -0.5, 0.5, 1.0)
FOUND, TESTS, CHOSEN, LEFT_OUT = "Test questions that find their answers", "Tests", "Fitted", "Fitted without the kind"
_SHARES = "share of words, as written", "share of words"
NOTES = (
    f"At most {QUESTIONS} validation and {QUESTIONS} test questions of each kind of text, with the smallest SHA-256 "
    f"of their id, search for their own answers among {ANSWERS:,} (all, if a kind has fewer).",
    "The weight has the highest mean over the kinds on validation questions; of equal ones, the smallest. Tests "
    "are paired t-tests over the test questions of all kinds, against the form with the highest mean. One share of "
    "words is fitted to questions as written only.",
)

Floats = npt.NDArray[np.float64]


# Questions and answers -----------------------------------------------------------------------------------------------


def read_kind(source: Path) -> TextCollection:
    """Take questions of both parts, and their answers among others, from a file of pairs or an ARQMath folder."""
    rows = sorted(question_pairs(source), key=lambda row: pseudo_random(row[0]))
    groups: dict[tuple[str, bool], dict[str, str]] = {
        (part, by_title): {} for part in PARTS for by_title in (False, True)
    }
    for qid, question, _, _ in rows:
        group = groups.get((part_of(qid), qid.endswith(TITLE)))
        if group is not None and (qid in group or len(group) < QUESTIONS):
            group[qid] = question
    questions = {qid: question for group in groups.values() for qid, question in group.items()}
    others = {qid: renamed(question, qid) for qid, question in questions.items() if not qid.endswith(TITLE)}
    answers = {aid: answer for qid, _, aid, answer in rows if qid in questions}
    for _, _, aid, answer in rows:
        if len(answers) >= ANSWERS:
            break
        answers[aid] = answer
    changed = {f"{qid}{RENAMED}": question for qid, question in others.items() if question != questions[qid]}
    right = dict.fromkeys((qid, aid) for qid, _, aid, _ in rows if qid in questions)
    qrels = [*right, *((f"{qid}{RENAMED}", aid) for qid, aid in right if f"{qid}{RENAMED}" in changed)]
    origin = file_fingerprint(source) if source.is_file() else source.name
    return TextCollection(
        source.name.partition(".")[0],
        lambda: ({"docno": docno, "text": text} for docno, text in answers.items()),
        pd.DataFrame(list((questions | changed).items()), columns=["qid", "query"], dtype=str),
        pd.DataFrame(qrels, columns=["qid", "docno"], dtype=str).assign(label=1),
        {"source": origin, "questions": QUESTIONS, "answers": ANSWERS},
    )


def part_of(qid: str) -> str:
    """Return the part of a question, in which its title is, too, and the question with other letters."""
    return known_item_split(qid.removesuffix(TITLE).removesuffix(RENAMED))


def question_pairs(source: Path) -> Iterator[tuple[str, str, str, str]]:
    """Read question id, question, answer id and answer as text; for ARQMath also with the title as question."""
    if source.is_file():
        yield from ((pair["qid"], pair["question"], pair["aid"], pair["answer"]) for pair in read_pair_file(source))
        return
    collection = ARQMathCollection(source)
    answers = {post.id: plain_text(post_from_html(post.body)) for post in collection.answers()}
    asked = {
        post.id: (plain_text(post_from_html(post.body, post.title)), plain_text(post_from_html(post.title)))
        for post in collection.questions()
    }
    for qid, aid in collection.pairs():
        whole, title = asked[qid]
        yield qid, whole, aid, answers[aid]
        yield f"{qid}{TITLE}", title, aid, answers[aid]


# Forms of the score --------------------------------------------------------------------------------------------------


class Scores:
    """BM25 and MaxSim of the candidates of one kind of text, and the values by which forms normalize them.

    Arrays are float64 ``[candidates]``; values of a query are repeated for each of its candidates.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.query, qids = pd.factorize(parts.scores["qid"])
        self.qids = list(qids)
        self.words, self.graph, self.structures = (
            parts.scores[name].to_numpy(np.float64) for name in ("words", "graph", "structures")
        )
        bounds = (np.where(bound > 0, bound, 1.0) for bound in map(parts.of_query, "BVT"))
        self.most_words, self.most_graph, self.most_structures = bounds
        self.tokens, self.rarest = map(parts.of_query, ("tokens", "rarest"))
        keys = ["qid", "docno"]
        right = pd.MultiIndex.from_frame(parts.qrels[keys])
        self.right = pd.MultiIndex.from_frame(parts.scores[keys]).isin(right)

    @cached_property
    def agreement(self) -> Floats:
        """The share of the first ten of both rankings that they have in common, never 0."""
        both = (self.ranks(self.words) <= 10) & (self.ranks(self.graph) <= 10)
        return np.asarray((np.bincount(self.query, both) + 1)[self.query] / 11, dtype=np.float64)

    def ranks(self, scores: Floats) -> Floats:
        """Number the candidates of each query from 1."""
        ranks = pd.Series(-scores).groupby(self.query).rank(method="first")
        return np.asarray(ranks, dtype=np.float64)

    def best(self, scores: Floats) -> Floats:
        """Return the highest score of the query."""
        return self._of_query(scores, "max")

    def standard(self, scores: Floats) -> Floats:
        """Standardize scores within each query."""
        spread = self._of_query(scores, "std")
        return np.asarray(
            (scores - self._of_query(scores, "mean")) / np.where(spread > 0, spread, 1.0), dtype=np.float64
        )

    def reciprocal_ranks(self, scores: Floats) -> Floats:
        """Return 1 / rank of the first right answer of each query, 0 after the tenth: float64 ``[queries]``."""
        best = np.full(len(self.qids), -np.inf)
        np.maximum.at(best, self.query[self.right], scores[self.right])
        rank = 1 + np.bincount(self.query, scores > best[self.query], minlength=len(best))
        return np.where(np.isfinite(best) & (rank <= 10), 1 / rank, 0.0)

    def _of_query(self, scores: Floats, name: Literal["max", "mean", "std"]) -> Floats:
        of_query: Floats = pd.Series(scores).groupby(self.query).transform(name).to_numpy(np.float64)
        return of_query


Part = Callable[[Scores], Floats]


@dataclass(frozen=True)
class Form:
    """A form of the score: ``odds · tilt ** exponent · words + graph + of_structures · structures``, fitted."""

    name: str
    words: Part
    graph: Part
    tilt: Part | None = None  # the part on which the weight of a query depends
    structures: Part | None = None
    odds: tuple[float, ...] = ODDS  # weights of words that are tried
    weights: tuple[float, ...] = STRUCTURES  # of structures

    def settings(self) -> list[tuple[float, float, float]]:
        """List all odds, exponents and weights of structures."""
        exponents = (0.0, *EXPONENTS) if self.tilt else (0.0,)
        return list(product(self.odds, exponents, self.weights if self.structures else (0.0,)))

    def score(self, of: Scores, odds: float, exponent: float, of_structures: float) -> Floats:
        """Score the candidates."""
        tilt = 1.0 if self.tilt is None or not exponent else self.tilt(of) ** exponent
        scored: Floats = odds * tilt * self.words(of) + self.graph(of)
        return scored + of_structures * self.structures(of) if self.structures and of_structures else scored


def _bounded_words(of: Scores) -> Floats:
    return of.words / of.most_words


def _bounded_graph(of: Scores) -> Floats:
    return of.graph / of.most_graph


def _bounded_structures(of: Scores) -> Floats:
    return of.structures / (of.most_structures + HALF)


def _reciprocal(scores: Callable[[Scores], Floats]) -> Part:
    return lambda of: 1 / (60 + of.ranks(scores(of)))


BOUNDED = Form("bounded", _bounded_words, _bounded_graph)
STRUCTURED = Form("bounded, with structures", _bounded_words, _bounded_graph, structures=_bounded_structures)
_ENGINE = fitted_weights(DEFAULT_MODEL)
FORMS = (
    BOUNDED,
    STRUCTURED,
    replace(STRUCTURED, name="the engine's structures", weights=(_ENGINE.structures / _ENGINE.graph,)),
    Form("BM25 by the root of its bound", lambda of: of.words / np.sqrt(of.most_words), _bounded_graph),
    Form("BM25 by the best of the query", lambda of: of.words / of.best(of.words), _bounded_graph),
    Form("standard scores", lambda of: of.standard(of.words), lambda of: of.standard(of.graph)),
    Form("reciprocal ranks", _reciprocal(lambda of: of.words), _reciprocal(lambda of: of.graph)),
    Form("bounded, by length", _bounded_words, _bounded_graph, lambda of: np.maximum(of.tokens, 1.0)),
    Form("bounded, by rarest term", _bounded_words, _bounded_graph, lambda of: np.maximum(of.rarest, 0.1)),
    Form("bounded, by agreement", _bounded_words, _bounded_graph, lambda of: of.agreement),
)
"""From simple to complex."""


# The study -----------------------------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """The fitted values."""

    odds: float
    exponent: float
    structures: float
    mean: float  # on the validation questions

    @property
    def setting(self) -> tuple[float, float, float]:
        return self.odds, self.exponent, self.structures

    @property
    def share(self) -> float:
        """w, the share of words next to vectors."""
        return self.odds / (1 + self.odds)


def run_blending(sources: Sequence[str | Path], workdir: str | Path, *, model: str, verbose: bool = True) -> Report:
    """Fit each form of the engine's score on validation questions of all kinds of text, and measure it on others.

    Args:
        sources: files of pairs and ARQMath folders, each a kind of text.
        workdir: where indexes, scores, tables and ``report.md`` are kept; finished stages are not repeated.
        model: name or folder of a trained model; a folder has the last part of its path as its name.
        verbose: report each stage on stderr, with progress bars.
    """
    work, say, name = Path(workdir), to_stderr if verbose else None, Path(model).name
    if not sources or len({Path(source).name for source in sources}) < len(sources):
        raise ConfigError("sources", list(map(str, sources)), "at least one, each with its own name")
    encoder, stages, kinds = MathAMR.from_pretrained(model), Stages(work, say), dict[str, Scores]()
    collections = list(map(read_kind, map(Path, sources)))
    for collection in collections:
        if len(set(map(part_of, collection.topics["qid"]))) < len(PARTS):
            raise ConfigError("sources", collection.name, "sources with questions of the validation and the test part")
    for collection in collections:
        own = Stages(work / "kinds" / collection.name, say)
        own.records = stages.records
        parts = parts_of(TextArtifacts(collection, encoder, own, verbose, suffix=f"-{name}"))
        kinds |= by_question(parts, collection.name)
    return _report(kinds, model, stages).write(work / name)


def by_question(parts: Parts, kind: str) -> dict[str, Scores]:
    """Part the candidates of a kind of text by their questions: as written, titles, and those with other letters."""
    names = {TITLE: f"titles of {kind}", RENAMED: f"{kind}{OTHER_LETTERS}"}
    special = {end: frozenset(qid for qid in parts.queries.index if qid.endswith(end)) for end in names}
    whole = frozenset(parts.queries.index).difference(*special.values())
    found = {kind: Scores(parts.only(whole))}
    return found | {names[end]: Scores(parts.only(qids)) for end, qids in special.items() if qids}


def fit(form: Form, kinds: Mapping[str, Scores]) -> Fit:
    """Find the odds and the exponent with the highest mean over the kinds on their validation questions."""
    return _best(_validated(form, kinds), form, list(kinds))


def _validated(form: Form, kinds: Mapping[str, Scores]) -> dict[str, list[float]]:
    """Measure each setting on the validation questions of each kind."""
    means = {}
    for name, kind in kinds.items():
        asked = np.array([part_of(qid) == "validation" for qid in kind.qids])
        scored = (kind.reciprocal_ranks(form.score(kind, *setting)) for setting in form.settings())
        means[name] = [float(values[asked].mean()) for values in scored]
    return means


def _best(means: Mapping[str, Sequence[float]], form: Form, kinds: Sequence[str]) -> Fit:
    over_kinds = np.mean([means[kind] for kind in kinds], axis=0)
    best = int(over_kinds.argmax())
    return Fit(*form.settings()[best], float(over_kinds[best]))


def _report(kinds: Mapping[str, Scores], model: str, stages: Stages) -> Report:
    rankings: dict[str, dict[str, pd.DataFrame]] = {
        kind: {TUNED: of.parts.ranking(of.parts.scores["bm25"].to_numpy()), model: of.parts.ranking(of.graph)}
        for kind, of in kinds.items()
    }
    chosen, left_out = [], []
    for form in FORMS:
        means = _validated(form, kinds)
        fitted = _best(means, form, list(kinds))
        written = _best(means, form, [kind for kind in kinds if not kind.endswith(OTHER_LETTERS)])
        chosen.append((form.name, written.share, fitted.share, *fitted))
        row: dict[str, object] = {"name": form.name}
        for kind, of in kinds.items():
            rankings[kind][form.name] = of.parts.ranking(form.score(of, *fitted.setting))
            if len(kinds) > 1:
                without = _best(means, form, [other for other in kinds if other != kind])
                values = of.reciprocal_ranks(form.score(of, *without.setting))
                row[kind] = float(values[[part_of(qid) == "test" for qid in of.qids]].mean())
        left_out.append(row)
    names = [TUNED, model, *(form.name for form in FORMS)]
    found, table = list[pd.DataFrame](), pd.DataFrame({"name": names})
    for kind, of in kinds.items():
        asked = pd.DataFrame({"qid": [qid for qid in of.qids if part_of(qid) == "test"]})
        own = measure_by_topic(rankings[kind], asked, of.parts.qrels, [MEASURE]).fillna({"value": 0.0})
        averages = means_table(own, names, [str(MEASURE)])
        table[kind], table[f"{kind} error"] = averages[str(MEASURE)], averages[f"{MEASURE} error"]
        found.append(own.assign(qid=f"{kind} " + own["qid"]))
    table["mean"] = table[list(kinds)].mean(axis=1)
    forms = table.iloc[2:]
    best = str(forms["name"].iloc[int(forms["mean"].to_numpy().argmax())])
    every = pd.concat(found, ignore_index=True)
    tests = rounded(paired_tests(every, [(name, best) for name in names if name != best], str(MEASURE)))
    ablated = pd.DataFrame(left_out)
    tables = {
        FOUND: table,
        TESTS: tests,
        CHOSEN: pd.DataFrame(chosen, columns=["form", *_SHARES, *Fit._fields[:-1], "mean on validation"]),
    }
    if len(kinds) > 1:
        tables[LEFT_OUT] = ablated.assign(mean=ablated[list(kinds)].mean(axis=1))
    return Report(
        title="Forms of the engine's score",
        settings={"kinds": list(kinds), "model": model},
        stages=stages.records,
        tables=tables,
        about={FOUND: f"{MEASURE} of test questions; ± is the standard error of the mean over the questions."},
        notes=NOTES,
        values={"by-question": every},
    )
