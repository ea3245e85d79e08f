"""Artifacts of one SQLite file: one part, filled in transactions of two rows in the scratch file of its job."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from artifact_modules import Artifact

from mathamr_systems import ThreadStore
from mathamr_systems.threads import thread_store
from pyterrier_mathamr.formula import FormulaStore, formula_store

_HEAD = "id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\n"
_SOURCES = TemporaryDirectory()
Path(_SOURCES.name).chmod(0o755)


def _table(numbers: range, seed: int, tag: str) -> Path:
    path = Path(_SOURCES.name) / f"{tag}-{numbers.stop}-{seed}.tsv"
    if not path.exists():
        lines = (f'd{i}\t1\t1\tanswer\t\t9\t{i % 3}\t\t"<math><{tag}>v{i}{seed}</{tag}></math>"\n' for i in numbers)
        path.write_text(_HEAD + "".join(lines), encoding="utf-8")
    return path


for _stop in (8, 12):  # before a trial fills the disk
    for _seed in (0, 1):
        for _tag in ("mi", "ci"):
            _table(range(_stop), _seed, _tag)


class Formulas(Artifact, name="formula_store"):
    KIND = "pyterrier_mathamr.formula:FormulaStore"
    MODES = ("create", "overwrite")  # its tables are its whole content, so nothing is added to it

    def build(self, path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
        formula_store._STEP = 2
        slt, opt = (_table(numbers, seed, tag) for tag in ("mi", "ci"))
        FormulaStore.build(path, [slt], [opt], overwrite=mode == "overwrite")

    def read(self, path: Path) -> object:
        with FormulaStore(path) as store:
            ids = [f"d{i}" for i in range(64)]
            return len(store), store.get_many(ids), store.visual_ids(ids)


class Threads(Artifact, name="thread_store"):
    """Posts of which d1 answers the question d0, d3 d2, and so on."""

    KIND = "mathamr_systems:ThreadStore"
    DELETES = False  # as its rows have no ids of the store's

    def build(self, path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
        thread_store.STEP = 2
        ThreadStore(path).indexer(mode).index(self._post(i, seed) for i in numbers)  # type: ignore[arg-type]

    def read(self, path: Path) -> object:
        with ThreadStore(path) as store:
            ids = [post.id for post in store]
            questions = [post.id for post in store if post.kind == "question"]
            return {
                "counts": [len(store), store.more_counts()],
                "posts": store.posts(ids),
                "texts": store.texts(ids),
                "answers": store.answers_of(questions),
                "best": store.best_answers(questions),
                "absent": "absent" in store,
            }

    def _post(self, i: int, seed: int) -> dict[str, Any]:
        post = {"docno": f"d{i}", "body": f"<p>text {i} {seed}</p>", "score": i + seed}
        post["comment_count"] = None if i % 3 else i
        if i % 2:
            question = {"kind": "answer", "parent_id": f"d{i - 1}", "accepted_answer_id": "", "title": "", "tags": ""}
            return {**post, **question}
        title = {"kind": "question", "parent_id": "", "title": f"Title {i} {seed}", "tags": "calculus limits"}
        return {**post, **title, "accepted_answer_id": f"d{i + 1}"}
