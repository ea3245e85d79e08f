"""The study ``answers/extract``: grades of the posts from which answers of Task 3 are cut.

Extracts themselves cannot be judged: the judgments of Task 3 are of the submitted answers. But the source of an
extract can be graded, if it is judged in Task 1::

    ranking of Task 1 ── judged answers of the topic only ──▶ ExtractAnswer ──▶ answers.tsv ──▶ P@1 by source, lengths
                      └─ all answers ──────────────────────▶ …
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from mathamr_systems import ColBERT, CosineScorer, ExtractAnswer
from mathamr_systems.experiments.measuring import PairedTest, paired_test
from mathamr_systems.experiments.systems import AnswerParts, AnswerSystem
from mathamr_systems.extract import Posts, Start
from pyterrier_mathamr.arqmath import read_answers, write_answers
from pyterrier_mathamr.fusion import ConvexFusion
from pyterrier_mathamr.model import TextEncoder
from studies.study import Outcome, Study

from .rows import MATHAMR_ROW, MINI_LM, SINGLE_ROW, TUNED_ROW

DEPTH = 20
"""Posts that are cut, of ``rerank``."""
COSINE, COLBERT = "MiniLM cosine", "ColBERT, untrained"
SOURCES, OF_ALL = "Sources, of the judged answers of a topic", "Sources, of all answers"


class Extract(NamedTuple):
    """One way to answer Task 3."""

    row: AnswerSystem  # of the study, whose ranking the posts are taken from
    posts: Posts = "original"  # see ExtractAnswer
    start: Start = "beginning"  # likewise
    scorer: str = COSINE  # COSINE or COLBERT
    judged: bool = True  # answers that are not judged for the topic are removed first, as for all measures with a prime


def _with_bm25(row: AnswerSystem) -> AnswerSystem:
    """Return the row of a system fused with the tuned BM25, both weighed alike."""

    def fused(parts: AnswerParts) -> pt.Transformer:
        return ConvexFusion(parts.ranking(row), parts.ranking(TUNED_ROW), alpha=0.5)

    return AnswerSystem(f"{row.name} + tuned BM25", fused, against=(row.name,), settings={"alpha": 0.5})


HYBRIDS = (_with_bm25(SINGLE_ROW), _with_bm25(MATHAMR_ROW))
RANKINGS = (TUNED_ROW, MATHAMR_ROW, *HYBRIDS)
EXTRACTS = (
    *(Extract(row) for row in RANKINGS),
    Extract(HYBRIDS[0], start="middle"),
    Extract(TUNED_ROW, "rerank"),  # few topics have more than 20 judged answers, so other rankings have the same posts
    Extract(TUNED_ROW, "rerank", "beginning", COLBERT),
    *(Extract(row, "remap") for row in (TUNED_ROW, HYBRIDS[0])),
    *(Extract(row, judged=False) for row in RANKINGS),
)
"""The first of each table is the baseline of the tests: an extract of the answer that the tuned BM25 ranks first."""
FULL = tuple(Extract(row, "rerank", "middle", judged=False) for row in RANKINGS)
"""The published runs' way, of the preset ``full``: some 30,000 snippets for the topics of a year."""


def answers_of(extract: Extract, parts: AnswerParts) -> pd.DataFrame:
    """Answer the topics of a year, or read the answers of an earlier run."""
    settings = {**extract._asdict(), "row": extract.row.name, "depth": DEPTH, "of": parts.of, **extract.row.settings}

    def build(path: Path) -> None:
        path.mkdir(exist_ok=True)
        write_answers(_extracted(extract, parts), path / "answers.tsv", name=_name(extract))

    return read_answers(parts.stage(f"extract {_name(extract)} {parts.of}", build, **settings) / "answers.tsv")


def _extracted(extract: Extract, parts: AnswerParts) -> pd.DataFrame:
    topics, qrels, _ = parts.found
    ranking = parts.ranking(extract.row)
    if extract.judged:
        ranking = ranking.merge(qrels[["qid", "docno"]], on=["qid", "docno"])
    ranking = ranking.sort_values(["qid", "rank"]).groupby("qid").head(DEPTH)
    threads = parts.threads if extract.posts == "remap" else None
    scorer, verbose = _scorer(extract.scorer, parts), parts.shared.verbose
    answer = ExtractAnswer(scorer, extract.posts, extract.start, DEPTH, threads=threads, verbose=verbose)
    found: pd.DataFrame = (parts.answer_texts() >> answer)(ranking.merge(topics, on="qid"))
    return found


def _scorer(name: str, parts: AnswerParts) -> pt.Transformer:
    if name == COLBERT:
        return parts.once(COLBERT, lambda: ColBERT.new(MINI_LM)).text_scorer(device=parts.device)
    cache = parts.shared.workdir / "texts.sqlite"
    return CosineScorer(TextEncoder(MINI_LM, cache=cache, device=parts.device))


def _name(extract: Extract) -> str:
    pool = "judged" if extract.judged else "all"
    return f"{extract.row.name} {extract.posts} {extract.start} {extract.scorer} {pool}"


def grades_of(answers: pd.DataFrame, parts: AnswerParts) -> pd.DataFrame:
    """Look up the grades in Task 1 of the sources of answers."""
    topics, qrels, _ = parts.found
    sources = answers.rename(columns={"sources": "docno"}).merge(qrels, on=["qid", "docno"], how="left")
    sources = topics[["qid"]].merge(sources, on="qid", how="left")
    good = (sources["label"] >= 2).astype("float64")
    lengths = sources["qanswer"].str.len()
    return pd.DataFrame(
        {
            "qid": sources["qid"],
            "grade": sources["label"],
            "good": good,
            "answered": sources["qanswer"].notna(),
            "characters": lengths,
        }
    )


def source_tables(outcome: Outcome) -> dict[str, pd.DataFrame]:
    """Measure all extracts: one table of extracts from judged answers, one from all answers."""
    ways = (*EXTRACTS, *FULL) if outcome.setting.preset.name == "full" else EXTRACTS
    of_years = [outcome.parts.at(of=year) for year in outcome.setting.years]
    tables = {}
    for caption, judged in ((SOURCES, True), (OF_ALL, False)):
        extracts = [one for one in ways if one.judged == judged and one.row.name not in outcome.missing]
        found = [[grades_of(answers_of(extract, parts), parts) for parts in of_years] for extract in extracts]
        first = _good(found[0])
        lines = [
            _line(extract, of, outcome.setting.years, first, len(extracts) - 1)
            for extract, of in zip(extracts, found, strict=True)
        ]
        tables[caption] = pd.DataFrame(lines)
    return tables


def _line(
    extract: Extract,
    found: Sequence[pd.DataFrame],
    years: Sequence[str],
    first: npt.NDArray[np.float64],
    tests: int,
) -> Mapping[str, object]:
    whole = pd.concat(found)
    test: PairedTest = paired_test(_good(found), first, tests)
    return {
        "ranking": extract.row.name,
        "posts": extract.posts,
        "start": extract.start,
        "scorer": extract.scorer,
        "P@1 by source": float(whole["good"].mean()),
        **{f"P@1 {year}": float(of["good"].mean()) for year, of in zip(years, found, strict=True)},
        "sources judged": float(whole["grade"].notna().mean()),
        "answered": float(whole["answered"].mean()),
        "characters": float(whole["characters"].mean()),
        "longest": int(whole["characters"].max()),
        "difference": round(test.difference, 4),
        "p": test.p,
        "p corrected": test.corrected,
    }


def _good(found: Sequence[pd.DataFrame]) -> npt.NDArray[np.float64]:
    values: npt.NDArray[np.float64] = pd.concat(found)["good"].to_numpy(np.float64)
    return values


_COLUMNS = (
    "P@1 by source: the share of topics whose answer is cut from a post of grade 2 or 3 in Task 1; a source that is "
    "not judged counts 0. Differences, p and p after Bonferroni are against the first row, tuned BM25's answer."
)

STUDY = Study(
    "answers/extract",
    "Task 3: extracts of answers",
    "answers",
    systems=HYBRIDS,
    published=(("zhong", ("7",)),),
    notes=(
        "Extracts cannot be judged, since the judgments of Task 3 are of the submitted answers: a figure "
        "here grades the post from which an extract is cut, and is not AR' or P'@1 of Task 3.",
        f"Rerank cuts the first {DEPTH} posts. Remap uses the best answer of the thread; in a collection without "
        "votes and accepted answers the first by docno.",
    ),
    more=source_tables,
    about={
        SOURCES: f"Answers that are not judged for a topic are removed from its ranking first. {_COLUMNS}",
        OF_ALL: f"The complete rankings. {_COLUMNS}",
    },
)
