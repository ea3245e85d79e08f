"""The collections of the study, each a folder in BEIR's layout, so that anybody's system can search them.

=============================  ===============================================  ======================================
folder                         documents                                        queries
=============================  ===============================================  ======================================
known-items                    the answers of an ARQMath folder                 its validation and test questions
known-items-renamed            the same                                         the same, with other letters
known-items-others             the answers, each with letters of its own        as written
twins                          the answers, and twins of some                   its test questions with a twin
twins-renamed                  the same                                         the same, with other letters
judged                         the answers                                      the topics of the years
judged-renamed                 the same                                         the same, with other letters
formulas                       of each query the same formula with other        formulas of the test questions
                               letters, and another one with the same letters
NAME, NAME-renamed             of another folder                                as written, with other letters
=============================  ===============================================  ======================================

A folder with twins has ``twins.tsv``, too: a query, and the document that should be above another.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from pyterrier_mathamr._common.ids import pseudo_random
from pyterrier_mathamr.arqmath import ARQMathCollection, BeirDataset, known_item_split
from pyterrier_mathamr.posts import plain_text, post_from_html
from studies.formulas.patterns import renamed as renamed_formula

from .letters import formulas_of, renamed
from .twins import Twin, changes, twin_of

RENAMED, TWIN = "-renamed", "twin-of-"
FORMULAS = 1000
"""Formulas whose twins are tried."""
TWINS = "twins.tsv"
Texts = Mapping[str, str]


class Order(NamedTuple):
    """Two documents of a query, of which the first should be above the second."""

    qid: str
    right: str
    wrong: str


@dataclass(frozen=True)
class Folder:
    """A collection before it is written.

    Attributes:
        name: of the folder.
        documents: text by docno.
        queries: text by qid.
        judgments: by the name of a split, (qid, docno, grade) of its queries.
        twins: of its queries.
    """

    name: str
    documents: Texts
    queries: Texts
    judgments: Mapping[str, Sequence[tuple[str, str, int]]]
    twins: Sequence[Order] = field(default=())

    def with_renamed(self) -> Folder:
        """Return the collection with other letters in each query."""
        queries = {qid: renamed(text, qid) for qid, text in self.queries.items()}
        return Folder(self.name + RENAMED, self.documents, queries, self.judgments, self.twins)

    def write(self, parent: Path) -> Path:
        """Write the folder."""
        folder = parent / self.name
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        for name, texts in (("corpus", self.documents), ("queries", self.queries)):
            lines = (json.dumps({"_id": key, "text": text}, ensure_ascii=False) for key, text in texts.items())
            (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        for split, rows in self.judgments.items():
            table = pd.DataFrame(rows, columns=["query-id", "corpus-id", "score"])
            table.to_csv(folder / "qrels" / f"{split}.tsv", sep="\t", index=False)
        if self.twins:
            pd.DataFrame(self.twins).to_csv(folder / TWINS, sep="\t", index=False)
        return folder


def read_twins(folder: Path) -> list[Order]:
    """Read the twins of a folder, none if it has no file of them."""
    if not (folder / TWINS).is_file():
        return []
    table = pd.read_csv(folder / TWINS, sep="\t", dtype=str)
    return [Order(*row) for row in table[list(Order._fields)].itertuples(index=False)]


def folders_of(collection: ARQMathCollection, years: Sequence[str]) -> Iterator[Folder]:
    """Make the collections of an ARQMath folder."""
    answers = {post.id: _text(post.body) for post in collection.answers()}
    questions = {
        post.id: _text(post.body, post.title) for post in collection.questions() if known_item_split(post.id) != "train"
    }
    own: dict[str, list[str]] = {}
    for pair in collection.pairs():
        if pair.question_id in questions and pair.answer_id in answers:
            own.setdefault(pair.question_id, []).append(pair.answer_id)
    queries = {qid: text for qid, text in questions.items() if qid in own}
    known = Folder("known-items", answers, queries, _of_splits(own))
    others = {docno: renamed(text, docno) for docno, text in answers.items()}
    yield from (known, known.with_renamed())
    yield Folder("known-items-others", others, queries, known.judgments)

    tests = [qid for qid in queries if known_item_split(qid) == "test"]
    twins = {qid: twin for qid in tests if (twin := _twin(queries[qid], own[qid], answers))}
    orders = [Order(qid, docno, TWIN + docno) for qid, (docno, _) in twins.items()]
    documents = answers | {TWIN + docno: twin.text for docno, twin in twins.values()}
    judgments = {"test": [(order.qid, order.right, 1) for order in orders]}
    pool = Folder("twins", documents, {qid: queries[qid] for qid in twins}, judgments, orders)
    yield from (pool, pool.with_renamed())

    topics, grades = dict[str, str](), list[tuple[str, str, int]]()
    for year in years:
        topics |= {f"{year}-{topic.id}": _text(topic.body, topic.title) for topic in collection.topics(year)}
        grades += [
            (f"{year}-{row.query_id}", row.doc_id, row.relevance)
            for row in collection.qrels(year)
            if row.doc_id in answers
        ]
    judged = Folder("judged", answers, {qid: topics[qid] for qid, _, _ in grades}, {"test": grades})
    yield from (judged, judged.with_renamed())
    yield contrast(text for qid, text in queries.items() if qid in tests)


def contrast(texts: Iterable[str], most: int = FORMULAS) -> Folder:
    """Make the collection of formulas, of which each query has two: the same with other letters, and another one."""
    found = sorted({latex for text in texts for latex in formulas_of(text)}, key=pseudo_random)
    documents, queries, orders = dict[str, str](), dict[str, str](), list[Order]()
    for latex in found:
        other, change = renamed_formula(latex), next(changes(latex, latex), None)
        if other is None or change is None:
            continue
        qid = f"f{len(queries)}"
        queries[qid] = f"${latex}$"
        documents |= {f"{qid}-renamed": f"${other}$", f"{qid}-changed": f"${change.changed}$"}
        orders.append(Order(qid, f"{qid}-renamed", f"{qid}-changed"))
        if len(queries) == most:
            break
    return Folder("formulas", documents, queries, {"test": [(qid, right, 1) for qid, right, _ in orders]}, orders)


def outside(folder: Path) -> Iterator[Folder]:
    """Return a collection of others as it is, and with other letters in its queries."""
    dataset = BeirDataset(folder)
    split = dataset.folder.split(None)
    judgments = [(one.query_id, one.doc_id, one.relevance) for one in dataset.folder.judgments(split)]
    documents = {
        one["docno"]: " ".join(filter(None, (one.get("title"), one["text"]))) for one in dataset.folder.documents()
    }
    queries = dict(dataset.folder.queries())
    whole = Folder(folder.name, documents, {qid: queries[qid] for qid, _, _ in judgments}, {"test": judgments})
    yield from (whole, whole.with_renamed())


def _text(body: str, title: str = "") -> str:
    return plain_text(post_from_html(body, title))


def _of_splits(own: Mapping[str, Sequence[str]]) -> dict[str, list[tuple[str, str, int]]]:
    rows: dict[str, list[tuple[str, str, int]]] = {"validation": [], "test": []}
    for qid, docnos in own.items():
        rows[known_item_split(qid)] += [(qid, docno, 1) for docno in docnos]
    return rows


def _twin(question: str, own: Sequence[str], answers: Texts) -> tuple[str, Twin] | None:
    """Make a twin of one of a question's own answers, by a formula that both have if there is one."""
    asked = frozenset(formulas_of(question))
    for docno in sorted(own, key=lambda docno: (asked.isdisjoint(formulas_of(answers[docno])), docno)):
        if (twin := twin_of(answers[docno], docno, sorted(asked))) is not None:
            return docno, twin
    return None
