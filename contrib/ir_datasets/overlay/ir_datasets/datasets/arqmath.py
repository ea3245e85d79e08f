import csv
import gzip
import io
import re
from html import unescape
from pathlib import Path
from typing import NamedTuple, Optional

import ir_datasets
from ir_datasets.datasets.base import Dataset, YamlDocumentation
from ir_datasets.formats import BaseDocs, BaseQueries, TrecQrels
from ir_datasets.indices import PickleLz4FullStore

_logger = ir_datasets.log.easy()

NAME = "arqmath"

QREL_DEFS = {
    3: "High: sufficient to answer the complete question on its own, or just as good as finding an exact match to the query formula",
    2: "Medium: provides some path towards the solution, or useful but not as good as an exact match",
    1: "Low: provides information that could be useful for finding or interpreting an answer, or has some chance of being useful",
    0: "Not relevant",
}

COUNTS = {"posts": 2466080, "questions": 1020585, "answers": 1445495, "formulas": 28320920}


class ArqmathDoc(NamedTuple):
    doc_id: str
    kind: str  # question or answer
    parent_id: str  # of an answer: its question
    title: str  # HTML; empty for an answer
    body: str  # HTML, formulas as <span class="math-container" id="...">
    text: str  # title and body as plain text, formulas as $latex$
    tags: str  # separated by spaces; empty for an answer
    accepted_answer_id: str
    score: Optional[int]
    date: Optional[str]

    def default_text(self):
        """
        title and body as plain text, formulas as $latex$
        """
        return self.text


class ArqmathFormula(NamedTuple):
    doc_id: str
    post_id: str
    thread_id: str  # the question
    type: str  # title, question, answer or comment
    visual_id: str  # the same for all formulas that look alike
    latex: str

    def default_text(self):
        """
        latex
        """
        return self.latex


class ArqmathTask1Query(NamedTuple):
    query_id: str
    title: str  # HTML
    body: str  # HTML
    tags: str
    text: str

    def default_text(self):
        """
        title and body as plain text, formulas as $latex$
        """
        return self.text


class ArqmathTask2Query(NamedTuple):
    query_id: str
    title: str
    body: str
    tags: str
    text: str
    formula_id: str  # of the query formula in title or body
    latex: str
    topic_id: str  # the Task 1 topic with the same question

    def default_text(self):
        """
        latex
        """
        return self.latex


_MATH = re.compile(
    r'<span class="math-container"(?: id="[^"]*")?>((?:(?!<span class="math-container").)*?)</span>', re.DOTALL
)
_BLOCK = re.compile(r"</?(?:p|div|br|hr|h[1-6]|ul|ol|li|pre|blockquote|table|tr|t[hd])\b[^<>]*>", re.IGNORECASE)
_INLINE = re.compile(
    r"</?(?:a|b|i|em|strong|code|span|img|su[bp]|strike|s|del|kbd|d[ltd]|t(?:head|body))(?:\s[^<>]*)?/?>", re.IGNORECASE
)
_DOLLARS = re.compile(r"(\${0,2})(.*)\1", re.DOTALL)
_MARK = re.compile("\ue000(\\d+)\ue001")
_GLUED = re.compile(r"(?<=[^\W_])(?=\ue000)|(?<=\ue001)(?=[^\W_])")


def _plain_text(*fragments):
    """Plain text of HTML, formulas as $latex$. A "<" in the LaTeX of a topic may be bare, so no HTML parser is used."""
    formulas = []

    def mark(match):
        latex = _DOLLARS.fullmatch(unescape(match[1]).strip())[2].strip()
        if not latex:
            return " "
        formulas.append(latex)
        return f"\ue000{len(formulas) - 1}\ue001"

    html = _MATH.sub(mark, "\n".join(fragments))
    text = _GLUED.sub(" ", unescape(_INLINE.sub("", _BLOCK.sub("\n", html))))
    lines = (" ".join(line.split()) for line in text.splitlines())
    return _MARK.sub(lambda match: _in_dollars(formulas[int(match[1])]), "\n".join(line for line in lines if line))


def _in_dollars(latex):
    escaped = (len(latex) - len(latex.rstrip("\\"))) % 2  # a backslash at the end would escape the dollar
    return f"${latex}{' ' * escaped}$"


def _tags(text):
    return " ".join(re.findall(r"[^<>|,\s]+", text))


class ArqmathDocs(BaseDocs):
    """Posts.V1.3.xml: all posts, the questions or the answers. Other types of post, such as wikis, are left out."""

    KINDS = {"1": "question", "2": "answer"}

    def __init__(self, dlc, kind):
        super().__init__()
        self._dlc = dlc
        self._kind = kind

    @ir_datasets.util.use_docstore
    def docs_iter(self):
        etree = ir_datasets.lazy_libs.lxml_html().etree
        with self._dlc.stream() as stream:
            # recover: some posts have characters that XML does not allow
            for _, row in etree.iterparse(stream, tag="row", recover=True, huge_tree=True):
                kind = self.KINDS.get(row.get("PostTypeId"))
                if kind is not None and self._kind in ("posts", f"{kind}s"):
                    yield self._doc(row, kind)
                row.clear()
                while row.getprevious() is not None:
                    del row.getparent()[0]

    def _doc(self, row, kind):
        title, body = row.get("Title", ""), row.get("Body", "")
        score = row.get("Score")
        return ArqmathDoc(
            doc_id=row.get("Id"),
            kind=kind,
            parent_id=row.get("ParentId", ""),
            title=title,
            body=body,
            text=_plain_text(title, body),
            tags=_tags(row.get("Tags", "")),
            accepted_answer_id=row.get("AcceptedAnswerId", ""),
            score=int(score) if score else None,
            date=row.get("CreationDate"),
        )

    def docs_cls(self):
        return ArqmathDoc

    def docs_store(self, field="doc_id"):
        path = Path(self._dlc.path(force=False)).parent / f"{self._kind}.pklz4"
        return PickleLz4FullStore(
            path=path, init_iter_fn=self.docs_iter, data_cls=self.docs_cls(), lookup_field=field,
            index_fields=["doc_id"], count_hint=COUNTS[self._kind],
        )  # fmt: skip

    def docs_count(self):
        store = self.docs_store()
        return store.count() if store.built() else None

    def docs_namespace(self):
        return NAME

    def docs_lang(self):
        return "en"


class ArqmathFormulas(BaseDocs):
    """latex_representation_v3: tables 1.tsv, 2.tsv, ... of the formulas as LaTeX."""

    def __init__(self, dlc):
        super().__init__()
        self._dlc = dlc

    @ir_datasets.util.use_docstore
    def docs_iter(self):
        csv.field_size_limit(max(csv.field_size_limit(), 64 << 20))  # the longest formulas exceed Python's limit
        tables = [path for path in Path(self._dlc.path()).iterdir() if re.fullmatch(r"\d+\.tsv(\.gz)?", path.name)]
        for path in sorted(tables, key=lambda path: int(path.name.split(".")[0])):
            opener = gzip.open if path.suffix == ".gz" else open
            with opener(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as table:
                for row in csv.DictReader(table, delimiter="\t"):
                    fields = (row[name] for name in ("id", "post_id", "thread_id", "type", "visual_id", "formula"))
                    yield ArqmathFormula(*fields)

    def docs_cls(self):
        return ArqmathFormula

    def docs_store(self, field="doc_id"):
        path = Path(self._dlc.path(force=False)).parent / "formulas.pklz4"
        return PickleLz4FullStore(
            path=path, init_iter_fn=self.docs_iter, data_cls=self.docs_cls(), lookup_field=field,
            index_fields=["doc_id"], count_hint=COUNTS["formulas"],
        )  # fmt: skip

    def docs_count(self):
        store = self.docs_store()
        return store.count() if store.built() else None

    def docs_namespace(self):
        return f"{NAME}/formulas"

    def docs_lang(self):
        return None


class ArqmathQueries(BaseQueries):
    # a bare "<" in a title or formula
    BARE = re.compile(rb"<(?!/?(?:Topics?|Title|Question|Tags|Formula_Id|Latex)[\s>]|\?xml|!--)")

    def __init__(self, dlc, task, namespace):
        super().__init__()
        self._dlc = dlc
        self._task = task
        self._namespace = namespace

    def queries_iter(self):
        etree = ir_datasets.lazy_libs.lxml_html().etree
        with self._dlc.stream() as stream:
            root = etree.parse(io.BytesIO(self.BARE.sub(b"&lt;", stream.read()))).getroot()
        for topic in root.iter("Topic"):
            field = {child.tag: "".join(child.itertext()).strip() for child in topic.iter() if child is not topic}
            query_id = topic.get("number").strip()
            title, body = field.get("Title", ""), field.get("Question", "")
            query = (query_id, title, body, _tags(field.get("Tags", "")), _plain_text(title, body))
            if self._task == 2:
                # two formulas of 2020 are escaped as HTML, and then as XML
                latex = re.sub("&(?:lt|gt|amp);", lambda match: unescape(match[0]), field["Latex"]).strip()
                topic_id = query_id.replace("B.", "A.")
                yield ArqmathTask2Query(*query, field["Formula_Id"], latex, topic_id)
            else:
                yield ArqmathTask1Query(*query)

    def queries_cls(self):
        return ArqmathTask2Query if self._task == 2 else ArqmathTask1Query

    def queries_namespace(self):
        return self._namespace

    def queries_lang(self):
        return "en"


class ArqmathQrels(TrecQrels):
    """Codes 5 (system failure) and 6 (do not know) are not grades, and such lines are left out."""

    def qrels_iter(self):
        return (qrel for qrel in super().qrels_iter() if qrel.relevance in QREL_DEFS)


def _init():
    base_path = ir_datasets.util.home_path() / NAME
    dlc = ir_datasets.util.DownloadConfig.context(NAME, base_path)
    documentation = YamlDocumentation(f"docs/{NAME}.yaml")
    docs = {kind: ArqmathDocs(dlc["posts"], kind) for kind in ("posts", "questions", "answers")}

    base = Dataset(docs["posts"], documentation("_"))
    subsets = {
        "questions": Dataset(docs["questions"], documentation("questions")),
        "answers": Dataset(docs["answers"], documentation("answers")),
        "formulas": Dataset(ArqmathFormulas(dlc["formulas"]), documentation("formulas")),
    }

    def subset(name, kind, task, topics):
        subsets[name] = Dataset(
            docs[kind],
            ArqmathQueries(dlc[topics], task, f"{NAME}/{topics.split('/')[0]}"),
            ArqmathQrels(dlc[f"{name}/qrels"], QREL_DEFS),
            documentation(name),
        )

    for year in ("2020", "2021", "2022"):
        subset(f"{year}/task1", "answers", 1, f"{year}/task1/topics")
        subset(f"{year}/task2", "posts", 2, f"{year}/task2/topics")
        subset(f"{year}/task2/visual", "posts", 2, f"{year}/task2/topics")
    subset("2022/task3", "answers", 1, "2022/task1/topics")

    ir_datasets.registry.register(NAME, base)
    for name in sorted(subsets):
        ir_datasets.registry.register(f"{NAME}/{name}", subsets[name])

    return base, subsets


base, subsets = _init()
