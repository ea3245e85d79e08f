"""The questions that are measured, and rankings for them from the artifacts of a work folder.

=================  ================================================  ============================================
questions          right are                                         from
=================  ================================================  ============================================
judged topics      answers by their grades                           the years of the release, pooled
known item         the question's own answers                        the test questions of the collection
duplicates         the answers of questions that it duplicates       the same, as far as ``links.tsv`` names some
all links          the answers of questions that it is linked with   the same
=================  ================================================  ============================================
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from pyterrier_mathamr.arqmath import MissingFileError
from pyterrier_mathamr.experiments.artifacts import Artifacts
from pyterrier_mathamr.experiments.choosing.definition import JUDGED, Fitted, Questions
from pyterrier_mathamr.experiments.tasks.found import joined
from studies.trained.job import KNOWN_ITEM

DUPLICATES, ALL_LINKS = "duplicates", "all links"


@dataclass(frozen=True, eq=False)
class Material:
    """Questions and judgments of a collection.

    Attributes:
        shared: the artifacts of the collection.
        years: of the topics.
    """

    shared: Artifacts
    years: tuple[str, ...]

    @cached_property
    def judged(self) -> Questions:
        """The topics of all years."""
        return Questions(JUDGED, self._of_years(lambda year: self.shared.topics(year).topics))

    @cached_property
    def qrels(self) -> pd.DataFrame:
        """Their judgments."""
        return self._of_years(lambda year: self.shared.topics(year).qrels)

    @cached_property
    def known_items(self) -> Questions:
        """The test questions."""
        return Questions(KNOWN_ITEM, self.shared.questions("test").topics)

    @property
    def own_answers(self) -> pd.DataFrame:
        """The own answers of the test questions, as judgments."""
        return self.shared.questions("test").qrels

    @cached_property
    def linked_answers(self) -> Mapping[str, pd.DataFrame]:
        """The answers of questions that the test questions are linked with, as judgments, by the kind of link."""
        answers, found = defaultdict[str, list[str]](list), defaultdict[str, set[tuple[str, str]]](set)
        for post in self.shared.collection.answers():
            answers[post.parent_id].append(post.id)
        asked = set(self.known_items.topics["qid"])
        try:
            links = list(self.shared.collection.links())
        except MissingFileError:
            links = []
        for link in links:
            for one, other in ((link.question_id, link.related_id), (link.related_id, link.question_id)):
                if one in asked and one != other:
                    for kind in (ALL_LINKS, *([DUPLICATES] if link.kind == "duplicate" else [])):
                        found[kind].update((one, docno) for docno in answers[other])
        return {
            kind: pd.DataFrame(sorted(found[kind]), columns=["qid", "docno"], dtype=str).assign(label=1)
            for kind in (DUPLICATES, ALL_LINKS)
        }

    def without_own(self, ranking: pd.DataFrame) -> pd.DataFrame:
        """Leave the own answers of test questions out of a ranking."""
        own = pd.MultiIndex.from_frame(self.own_answers[["qid", "docno"]])
        kept: pd.DataFrame = ranking[~pd.MultiIndex.from_frame(ranking[["qid", "docno"]]).isin(own)]
        return kept

    def fitted(
        self, find: Callable[[str], pd.DataFrame], chosen: Mapping[str, object] | None = None, *, keep: bool = True
    ) -> Fitted:
        """Make a system of rankings that are found by year, and for known items."""
        kept: dict[str, pd.DataFrame] = {}

        def rank(questions: Questions) -> pd.DataFrame:
            found = kept.get(questions.of)
            if found is None:
                found = self._of_years(find) if questions.of == JUDGED else find(questions.of)
                if keep:
                    kept[questions.of] = found
            return questions.kept(found)

        return Fitted(chosen or {}, rank)

    def _of_years(self, find: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
        return joined({year: find(year) for year in self.years}).reset_index(drop=True)
