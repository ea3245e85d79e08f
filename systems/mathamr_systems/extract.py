"""Task 3: one answer for each topic, cut from the answers that Task 1 ranks.

::

    ranking of Task 1 ──▶ the first posts ── sentences ──▶ snippets ── scorer ──▶ the best one: qanswer, at most 1,200
                          (original, rerank, remap)                               characters

A snippet is a run of whole sentences, formulas printed as ``$latex$``, so that none is cut::

    7 sentences, sizes 5 to 10     middle       (0,5) (0,6) (0,7) (1,5) (1,6) (2,5)      start and size
                                   beginning    (0,5) (0,6) (0,7)
    4 sentences                    both         (0,4)

A snippet is refused if it has fewer words than ``shortest``, more characters than ``limit``, or an odd number of
dollars.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr.explain import Explanation, Part, QueryRow, read_asked
from pyterrier_mathamr.extending import (
    COUNT,
    FLAG,
    ConfigError,
    Rule,
    Transformer,
    at_least,
    distinct_queries,
    documents,
    empty_output,
    one_of,
    ordered_by_score,
    progress,
)
from pyterrier_mathamr.model import TextEncoder
from pyterrier_mathamr.posts import MathPost, document_post, plain_text, post_from_html, query_post

from .language_models import TEXT_COLUMNS, check_texts, text_row
from .threads import ThreadStore

Start = Literal["beginning", "middle"]


class AnswerSnippet(NamedTuple):
    """A run of sentences of a post."""

    start: int  # the number of its first sentence
    size: int  # the number of its sentences; 0 for a part of one
    text: str


def windows(count: int, start: Start, sizes: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """List the runs of sentences that are candidates, by start and size."""
    least, most = sizes
    if 0 < count < least:
        yield 0, count
    elif start == "beginning":
        yield from ((0, size) for size in range(least, count + 1))
    else:
        for first in range(count - least + 1):
            yield from ((first, size) for size in range(least, min(most, count - first) + 1))


def snippets_of(
    post: MathPost, start: Start, sizes: tuple[int, int], *, shortest: int = 20, limit: int = 1200
) -> list[AnswerSnippet]:
    """Cut a post into snippets, without the refused ones."""
    sentences = printed_sentences(post)
    lengths = [len(sentence) for sentence in sentences]
    snippets = []
    for first, size in windows(len(sentences), start, sizes):
        if sum(lengths[first : first + size]) + size - 1 > limit:
            continue
        text = " ".join(sentences[first : first + size])
        if not text.count("$") % 2 and len(text.split()) >= shortest:
            snippets.append(AnswerSnippet(first, size, text))
    return snippets


def longest_prefix(post: MathPost, limit: int = 1200) -> AnswerSnippet | None:
    """Return the longest beginning of a post within a limit, for a post whose snippets are all refused."""
    sentences = printed_sentences(post)
    first = next((i for i, sentence in enumerate(sentences) if len(sentence) <= limit), None)
    if first is not None:
        return _prefix(sentences[first:], limit)._replace(start=first)
    for i, sentence in enumerate(post.sentences):
        words = [plain_text(replace(post, text=word)) for word in sentence.split()]
        if words and len(words[0]) <= limit:
            return _prefix(words, limit)._replace(start=i, size=0)
    return None


def printed_sentences(post: MathPost) -> list[str]:
    """Return the sentences of a post, formulas as ``$latex$``."""
    return [plain_text(replace(post, text=sentence)) for sentence in post.sentences]


def _prefix(parts: Sequence[str], limit: int) -> AnswerSnippet:
    """Join as many parts as fit, the first at least; one with an even number of dollars if there is any."""
    length, fitting = -1, 0
    for part in parts:
        length += len(part) + 1
        if length > limit:
            break
        fitting += 1
    dollars = accumulate(part.count("$") for part in parts[:fitting])
    even = [size for size, count in enumerate(dollars, start=1) if not count % 2]
    size = even[-1] if even else fitting
    return AnswerSnippet(0, size, " ".join(parts[:size]))


class CosineScorer(Transformer):
    """Scores each document of a ranking by the cosine of its text's vector and the query's.

    Formulas are read as ``$latex$``, and each distinct text is encoded once. Rows are ordered by query, descending
    score and docno.

    Example::

        bm25 >> dataset.text_loader(["text"]) >> CosineScorer(TextEncoder())

    Args:
        encoder: from texts to vectors of unit length; any but the bundled one needs the extra ``text``.
    """

    label = "cosine"

    def __init__(self, encoder: TextEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Replace ``score`` and ``rank`` of a ranking with the texts of queries and documents."""
        check_texts(inp, "ranking", self)
        if inp.empty:
            return empty_output(inp, ["score", "rank"])
        queries = distinct_queries(inp)
        asked = {row["qid"]: plain_text(query_post(row)) for row in documents(queries)}
        texts = [_text(row) for row in documents(inp)]
        scores = self._cosines([asked[qid] for qid in inp["qid"]], texts)
        return ordered_by_score(inp, scores)

    def explain(self, query: QueryRow, docno: str | None = None) -> Explanation:
        """Return the score of ``docno`` for ``query`` as one part: a cosine of vectors has no others."""
        name = next((name for name in TEXT_COLUMNS if name in query), TEXT_COLUMNS[0])
        asked = read_asked(query, docno, self.label, [name])
        texts = plain_text(query_post(asked.query_row())), _text(asked.row)
        score = float(self._cosines([texts[0]], [texts[1]])[0])
        part = Part(self.label, "document", texts[0], "document", texts[1], score, 1.0, score)
        return asked.explained([part])

    def _cosines(self, queries: list[str], texts: list[str]) -> Any:
        """Return the cosine of each query and text: float64 ``[n]``."""
        distinct = list(dict.fromkeys([*queries, *texts]))
        place = {text: row for row, text in enumerate(distinct)}
        vectors = self.encoder.encode(distinct).astype(np.float64)
        left, right = vectors[[place[text] for text in queries]], vectors[[place[text] for text in texts]]
        return (left * right).sum(axis=1)


def _text(row: Mapping[str, Any]) -> str:
    return plain_text(document_post(text_row(row)))


Posts = Literal["original", "rerank", "remap"]

_RESULT = {"docno", "docid", "score", "rank", *TEXT_COLUMNS}


class ExtractAnswer(Transformer):
    """Extracts one answer for each topic from the posts that Task 1 ranks first (ARQMath Task 3).

    Zhong, Xie and Lin, "Applying Structural and Dense Semantic Matching for the ARQMath Lab 2022" (CLEF 2022), section
    4.7. Posts are cut into runs of whole sentences, so that no formula is cut; the run with the highest score is
    the answer. Equal scores: the earlier post, the earlier start, the shorter run. The authors then chose by hand, so
    their runs are manual and cannot be reproduced exactly.

    The paper is silent on how words are counted (here at white space), and on topics whose snippets are all refused:
    here their answer is the longest beginning of their first post within the limit, see :func:`longest_prefix`.

    Example::

        answers = (bm25 >> dataset.text_loader(["text"]) >> ExtractAnswer(CosineScorer(TextEncoder())))(topics)
        mathamr.arqmath.write_answers(answers, "task3.tsv", name="mathamr")

    Args:
        scorer: a scorer of texts, such as ``colbert.text_scorer()`` or ``CosineScorer(TextEncoder())``.
        posts: ``original``: snippets of the first post; ``rerank``: of the first ``depth`` posts; ``remap``: of the
            best answer in the thread of the first post that has one. The paper looks for the most similar question
            instead; the published program uses the ranked answers, which needs no index of questions.
        start: ``beginning``: all prefixes of at least ``sizes[0]`` sentences; ``middle``: all runs of ``sizes``.
        depth: the number of posts of ``rerank``.
        sizes: the smallest and the largest number of sentences of a snippet.
        shortest: the fewest words of a snippet.
        limit: the most Unicode characters of an answer; the lab allows 1,200.
        threads: the store of threads, for ``remap``.
        verbose: show progress.

    Raises:
        ConfigError: an option is out of its range, or ``remap`` has no ``threads``.
    """

    label = "answer extraction"
    checks: ClassVar[Mapping[str, Rule]] = {
        "posts": one_of(*get_args(Posts)),
        "start": one_of(*get_args(Start)),
        "depth": COUNT,
        "sizes": Rule(
            "two integers, the first 1 or more and at most the second",
            lambda sizes: (
                isinstance(sizes, (list, tuple))
                and len(sizes) == 2
                and all(map(COUNT.holds, sizes))
                and sizes[0] <= sizes[1]
            ),
        ),
        "shortest": at_least(0),
        "limit": COUNT,
        "verbose": FLAG,
    }

    def __init__(
        self,
        scorer: pt.Transformer,
        posts: Posts = "original",
        start: Start = "beginning",
        depth: int = 20,
        sizes: tuple[int, int] = (5, 10),
        shortest: int = 20,
        limit: int = 1200,
        *,
        threads: ThreadStore | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.scorer, self.threads, self.verbose = scorer, threads, verbose
        self.posts: Posts = posts
        self.start: Start = start
        self.depth, self.sizes, self.shortest, self.limit = depth, sizes, shortest, limit
        if posts == "remap" and threads is None:
            raise ConfigError("threads", threads, "a ThreadStore where posts='remap'")

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Extract the answers.

        Args:
            inp: a ranking with ``qid``, ``docno``, ``score``, ``query`` (or ``title`` and ``body``), and ``html``,
                ``text`` or ``markdown`` of each document; for ``remap`` without these.

        Returns:
            ``qid``, ``docno`` (the post), ``qanswer`` (the text), ``score`` (the scorer's) and ``sources`` (the post),
            one row for each topic with a post, in the order of the topics, as for ``arqmath.write_answers``.

        Raises:
            UnknownIdError: with ``remap``, a post is not in the store.
        """
        with pt.validate.any(inp, context=self) as check:
            if self.posts == "remap":
                check.result_frame(extra_columns=["score"])
            for name in TEXT_COLUMNS:
                check.result_frame(extra_columns=["score", name])
        if inp.empty:
            return empty_output(inp[["qid"]], ["docno", "qanswer", "score", "sources"])
        ranked = ordered_by_score(inp, inp["score"])
        groups = ranked.groupby("qid", sort=False)
        topics = progress(groups, "extracting", "answers", verbose=self.verbose, total=groups.ngroups)
        answers = [answer for _, ranking in topics if (answer := self._answer(ranking)) is not None]
        frame = pd.DataFrame(answers, columns=["qid", "docno", "qanswer", "score", "sources"])
        return frame.astype({"qid": inp["qid"].dtype, "docno": "str", "score": "float64"})

    def _answer(self, ranking: pd.DataFrame) -> tuple[str, str, str, float, str] | None:
        """Extract the answer to the topic of a ranking; ``None`` where no post has a text."""
        posts = list(self._posts_of(ranking))
        candidates = [
            (docno, snippet)
            for docno, post in posts
            for snippet in snippets_of(post, self.start, self.sizes, shortest=self.shortest, limit=self.limit)
        ]
        if not candidates:
            whole = ((docno, longest_prefix(post, self.limit)) for docno, post in posts)
            candidates = [(docno, snippet) for docno, snippet in whole if snippet is not None][:1]
        if not candidates:
            return None
        scores = self._scores(ranking, candidates)
        best = scores.index(max(scores))  # candidates are in the order of ties
        docno, snippet = candidates[best]
        return ranking["qid"].iloc[0], docno, snippet.text, scores[best], docno

    def _posts_of(self, ranking: pd.DataFrame) -> Iterator[tuple[str, MathPost]]:
        """Read the posts to cut snippets from, best first, without posts that have no text."""
        found: Iterator[tuple[str, MathPost]]
        if self.posts == "remap" and (threads := self.threads) is not None:
            best = threads.best_answer()(ranking[["qid", "docno", "score"]])["docno"]
            found = ((docno, post_from_html(threads.texts([docno])[0][1])) for docno in best)
        else:
            rows = map(text_row, documents(ranking))
            found = ((row["docno"], document_post(row)) for row in rows)
        with_text = ((docno, post) for docno, post in found if post.text)
        return islice(with_text, self.depth if self.posts == "rerank" else 1)

    def _scores(self, ranking: pd.DataFrame, candidates: list[tuple[str, AnswerSnippet]]) -> list[float]:
        topic = ranking.iloc[[0] * len(candidates)].drop(columns=_RESULT & {*ranking.columns})
        names = [f"{docno}#{snippet.start}+{snippet.size}" for docno, snippet in candidates]
        texts = [snippet.text for _, snippet in candidates]
        frame = topic.reset_index(drop=True).assign(docno=names, text=texts, score=0.0, rank=range(len(names)))
        scored = self.scorer(frame)
        score_of = dict(zip(scored["docno"], scored["score"].fillna(-math.inf), strict=True))
        return [float(score_of[name]) for name in names]
