"""`ExtractAnswer`: the best snippet of the first posts of a ranking."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, NamedTuple, get_args

import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr._common.frames import empty_output, ordered_by_score
from pyterrier_mathamr._common.parameters import COUNT, FLAG, Rule, at_least, one_of
from pyterrier_mathamr._common.transformers import Transformer
from pyterrier_mathamr.posts import MathPost, document_post, post_from_html
from pyterrier_mathamr.systems.text_columns import TEXT_COLUMNS, text_row
from pyterrier_mathamr.systems.threads import ThreadStore

from .snippets import Snippet, Start, longest_prefix, snippets_of

Posts = Literal["original", "rerank", "remap"]

_RESULT = {"docno", "docid", "score", "rank", *TEXT_COLUMNS}


class _Candidate(NamedTuple):
    """A snippet with its place: ``post`` is the number of its post, in the order of the ranking."""

    post: int
    docno: str
    snippet: Snippet


class ExtractAnswer(Transformer):
    """Extracts one answer for each topic from the posts that Task 1 ranks first (ARQMath Task 3).

    Zhong, Xie and Lin, "Applying Structural and Dense Semantic Matching for the ARQMath Lab 2022" (CLEF 2022), section
    4.7. Posts are cut into runs of whole sentences, so that no formula is cut; the run that the scorer likes most is
    the answer. Equal scores: the earlier post, the earlier start, the shorter run. The authors then chose by hand, so
    that their runs are manual and cannot be reproduced to the digit.

    The paper is silent on how words are counted (here at white space), and on topics whose snippets are all refused:
    they are answered by the longest beginning of their first post within the limit, see :func:`longest_prefix`.

    Example::

        answers = (bm25 >> dataset.text_loader(["text"]) >> ExtractAnswer(CosineScorer(TextEncoder())))(topics)
        mathamr.arqmath.write_answers(answers, "task3.tsv", name="mathamr")

    Args:
        scorer: a scorer of texts, such as ``colbert.text_scorer()`` or ``CosineScorer(TextEncoder())``.
        posts: ``original``: snippets of the first post; ``rerank``: of the first ``depth`` posts; ``remap``: of the
            best answer in the thread of the first post that has one. The paper looks for the most similar question
            instead; the published program takes the ranked answers, which needs no index of questions.
        start: ``beginning``: all prefixes of at least ``sizes[0]`` sentences; ``middle``: all runs of ``sizes``.
        depth: the number of posts of ``rerank``.
        sizes: the smallest and the largest number of sentences of a snippet, both included.
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
            one row for each topic with a post, in the order of the topics: what ``arqmath.write_answers`` takes.

        Raises:
            UnknownIdError: ``remap``, and a post is not in the store.
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
        found = pd.DataFrame(answers, columns=["qid", "docno", "qanswer", "score", "sources"])
        return found.astype({"qid": inp["qid"].dtype, "docno": "str", "score": "float64"})

    def _answer(self, ranking: pd.DataFrame) -> tuple[str, str, str, float, str] | None:
        """Extract the answer to the topic of a ranking; ``None`` where no post has a text."""
        posts = list(self._posts_of(ranking))
        options = {"shortest": self.shortest, "limit": self.limit}
        candidates = [
            _Candidate(number, docno, snippet)
            for number, (docno, post) in enumerate(posts)
            for snippet in snippets_of(post, self.start, self.sizes, **options)
        ]
        if not candidates:
            whole = ((i, docno, longest_prefix(post, self.limit)) for i, (docno, post) in enumerate(posts))
            candidates = [_Candidate(i, docno, snippet) for i, docno, snippet in whole if snippet is not None][:1]
        if not candidates:
            return None
        scores = self._scores(ranking, candidates)
        best = max(range(len(candidates)), key=lambda place: (scores[place], -place))  # in the order of ties
        chosen = candidates[best]
        return ranking["qid"].iloc[0], chosen.docno, chosen.snippet.text, scores[best], chosen.docno

    def _posts_of(self, ranking: pd.DataFrame) -> Iterator[tuple[str, MathPost]]:
        """Read the posts that snippets are taken from, best first, without those that have no text."""
        threads = self.threads if self.posts == "remap" else None
        found = _texts(ranking) if threads is None else _best_answers(threads, ranking)
        with_text = ((docno, post) for docno, post in found if post.text)
        wanted = self.depth if self.posts == "rerank" else 1
        for _, pair in zip(range(wanted), with_text, strict=False):
            yield pair

    def _scores(self, ranking: pd.DataFrame, candidates: list[_Candidate]) -> list[float]:
        """Score the snippets against the topic."""
        topic = ranking.iloc[[0] * len(candidates)].drop(columns=_RESULT & {*ranking.columns})
        names = [f"{of.docno}#{of.snippet.start}+{of.snippet.size}" for of in candidates]
        texts = [of.snippet.text for of in candidates]
        frame = topic.reset_index(drop=True).assign(docno=names, text=texts, score=0.0, rank=range(len(names)))
        scored = self.scorer(frame)
        found = dict(zip(scored["docno"], scored["score"].fillna(-math.inf), strict=True))
        return [float(found[name]) for name in names]


def _best_answers(threads: ThreadStore, ranking: pd.DataFrame) -> Iterator[tuple[str, MathPost]]:
    """Read the best answers of the threads of a ranking."""
    for docno in threads.best_answer()(ranking[["qid", "docno", "score"]])["docno"]:
        yield docno, post_from_html(threads.texts([docno])[0][1])


def _texts(ranking: pd.DataFrame) -> Iterator[tuple[str, MathPost]]:
    """Read the posts of a ranking."""
    for row in ranking.itertuples(index=False, name=None):
        document = text_row(dict(zip(ranking.columns, row, strict=True)))
        yield document["docno"], document_post(document)
