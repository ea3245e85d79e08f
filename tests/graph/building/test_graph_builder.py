"""The transformer from text to graphs: every kind of frame, and posts that make a part of the way fail."""

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from pyterrier_mathamr._common.errors import ConfigError, MathAMRWarning
from pyterrier_mathamr._common.frames import with_objects
from pyterrier_mathamr.amr import decode_penman
from pyterrier_mathamr.formula import FormulaPair, FormulaTree, trees_from_latex
from pyterrier_mathamr.graph import GraphBuilder
from pyterrier_mathamr.graph import building as building_module
from pyterrier_mathamr.posts import TITLE_FORMULA


class OneWordParser:
    """Parses every post to its first word, drops all formulas, and counts its calls."""

    name = "one-word"

    def __init__(self):
        self.batches = []

    def __eq__(self, other):
        return isinstance(other, OneWordParser)

    def __hash__(self):
        return 1

    def __repr__(self):
        return "OneWordParser()"

    def parse_sentences(self, sentences):
        return [f"(w / word-{len(sentence)})" for sentence in sentences]

    def parse_post(self, post):
        return self.parse_posts([post])[0]

    def parse_posts(self, posts):
        self.batches.append(len(posts))
        if any("explode" in post.text for post in posts):
            raise RecursionError("too deep")
        return [decode_penman(f"(w / {(post.text.split() or ['nothing'])[0].lower()})") for post in posts]


class Official:
    """A store of official trees with one formula."""

    trees = FormulaPair(slt=FormulaTree(("V!official",), ()), opt=None)

    def get_many(self, ids):
        return {name: self.trees for name in ids if name == "77"}


HTML = '<p>Solve <span class="math-container" id="77">x^2</span> or <span class="math-container">y</span></p>'


def roots(frame, column):
    return [graph.amr.labels[0] for graph in frame[column]]


def build(frame, **options):
    return GraphBuilder(OneWordParser(), **options)(pd.DataFrame(frame))


def test_documents_get_graphs_with_their_formulas_and_ids():
    [graph] = build([{"docno": "5", "html": HTML}])["graph"]
    assert (graph.id, graph.formula_ids, graph.amr.labels[0]) == ("5", ("77", "5#1"), "solve")
    pairs = graph.trees()
    for pair, latex in zip(pairs, ("x^2", "y"), strict=True):
        made = trees_from_latex(latex)
        assert [tree.nodes for tree in pair if tree] == [tree.nodes for tree in made if tree]
    # official trees come before trees of LaTeX, which fill the gaps
    title = '<span class="math-container" id="77">w</span>'
    [graph] = build([{"docno": "5", "html": HTML, "parent_title": title}], store=Official())["graph"]
    assert [pair.slt == Official.trees.slt for pair in graph.trees()] == [True, False, True]
    assert graph.trees()[0].opt.nodes == trees_from_latex("x^2").opt.nodes


@pytest.mark.parametrize(
    ("formulas", "present"), [("both", (1, 1)), ("opt", (0, 1)), ("slt", (1, 0)), ("none", (0, 0))]
)
def test_only_the_wanted_trees_are_attached(formulas, present):
    [graph] = build([{"docno": "5", "html": HTML}], formulas=formulas)["graph"]
    pairs = graph.trees()
    assert tuple(int(tree is not None) for tree in pairs[0]) == present
    assert graph.n_formulas == 2


def test_the_best_text_column_is_read_with_the_title_first():
    rows = [
        {"docno": "1", "html": "<p>Html</p>", "body": "Body", "text": "Text"},
        {"docno": "2", "html": None, "body": "Body", "text": "Text"},
        {"docno": "3", "html": np.nan, "body": None, "text": "Text"},
        {"docno": "4", "html": "<p>Html</p>", "title": "Title"},
    ]
    assert roots(build(rows), "graph") == ["html", "body", "text", "title"]
    by_row = build([{"text": "One"}, {"text": "Two"}])
    assert (roots(by_row, "graph"), [graph.id for graph in by_row["graph"]]) == (["one", "two"], ["", ""])


ANSWER = {"docno": "5", "html": HTML}
TITLED = {**ANSWER, "parent_title": '<i>Is</i> $z!$ or <span class="math-container" id="9">w</span> prime?'}


def test_a_document_begins_with_the_title_of_its_question_and_keeps_its_own_formulas():
    builder = GraphBuilder()
    plain, titled = (builder([row])[0]["graph"] for row in (ANSWER, TITLED))
    assert titled.text == f"Is FORMULA_2 or FORMULA_3 prime?\n{plain.text}"
    assert titled.sentence_texts == ("Is FORMULA_2 or FORMULA_3 prime?", *plain.sentence_texts)
    assert titled.latex == ("x^2", "y", "z!", "w")
    assert titled.formula_ids == ("77", "5#1", TITLE_FORMULA, TITLE_FORMULA)
    assert titled.trees()[:2] == plain.trees()
    assert builder.build_rows([TITLED])[0]["graph"] == titled
    for blank in ("", " ", None, float("nan")):
        assert builder(pd.DataFrame([{**ANSWER, "parent_title": blank}]))["graph"][0] == plain
    alone = GraphBuilder(context="none")
    assert alone([TITLED])[0]["graph"] == plain == alone.build_rows([TITLED])[0]["graph"]
    [typed] = build([{**ANSWER, "parent_title": "On FORMULA_0 and $z$"}])["graph"]
    assert typed.text.startswith("On FORMULA-0 and FORMULA_2\n"), "typed as a placeholder, it is no formula"
    documents = pd.DataFrame([TITLED, {"docno": "6", "html": "Other", "parent_title": None}])
    built = build(documents.assign(qid="1", query="q", title="t"), side="both")
    assert [graph.text.split("\n")[0] for graph in built["graph"]] == ["Is FORMULA_2 or FORMULA_3 prime?", "Other"]
    assert {graph.text for graph in built["query_graph"]} == {"q"}


def test_queries_read_title_and_body_where_there_is_a_body_and_else_the_query():
    rows = [
        {"qid": "1", "title": "Title", "body": "Body", "query": "Query"},
        {"qid": "2", "title": "Title", "body": None, "query": "Query"},
        {"qid": "3", "title": "Title", "body": None, "query": None},
        {"qid": "4", "title": "", "body": " ", "query": "Query"},
    ]
    assert roots(build(rows), "query_graph") == ["title", "query", "title", "query"]
    assert [graph.id for graph in build(rows)["query_graph"]] == list("1234")
    topic = {"qid": "B.1", "query": "x", "formula_id": "q_1"}
    assert build([topic])["query_formula_id"].tolist() == ["q_1"]
    assert build([{**topic, "query_formula_id": "q_9"}])["query_formula_id"].tolist() == ["q_9"]


def test_each_query_of_a_ranking_is_built_once_and_joined_back():
    parser = OneWordParser()
    ranking = pd.DataFrame(
        {
            "qid": ["1", "2", "1", "2"],
            "query": [None, "Beta", "Alpha", np.nan],
            "docno": ["a", "a", "b", "c"],
            "title": ["document title"] * 4,
            "body": ["document body"] * 4,
        }
    )
    result = GraphBuilder(parser)(ranking)
    assert roots(result, "query_graph") == ["alpha", "beta", "alpha", "beta"]
    assert parser.batches == [2]
    assert "graph" not in result.columns


BLANK = (None, np.nan, pd.NA, "", "  ", "\t\n", "<p> </p>")


@pytest.mark.parametrize("blank", BLANK, ids=repr)
@pytest.mark.parametrize("ranking", [{}, {"docno": "a", "body": "of the document"}], ids=["topics", "ranking"])
def test_blank_queries_get_empty_graphs_and_are_named_in_one_warning(blank, ranking, recwarn):
    if blank is pd.NA or blank != "<p> </p>":  # one row with text is enough
        texts = zip("abc", (blank, "x", blank), strict=True)
        assert (
            roots(build([{"qid": "1", "docno": docno, "query": text} for docno, text in texts]), "query_graph")
            == ["x"] * 3
        )
        assert not recwarn.list
    rows = [{"qid": qid, "query": text} | ranking for qid, text in (("1", blank), ("2", "x"), ("3", blank))]
    with pytest.warns(MathAMRWarning, match=r"^blank queries find nothing: '1', '3'\.") as caught:
        graphs = build(rows)["query_graph"]
    assert len(caught) == 1
    assert [graph.is_empty for graph in graphs] == [True, False, True]
    assert [graph.id for graph in graphs] == ["1", "2", "3"]


def test_a_blank_document_has_the_graph_of_an_empty_sentence(recwarn):
    [graph] = GraphBuilder()(pd.DataFrame({"docno": ["1"], "text": [""]}))["graph"]
    assert (graph.n_sentences, recwarn.list) == (1, [])


def test_a_query_without_text_keeps_the_graph_it_has() -> None:
    graph = GraphBuilder()(pd.DataFrame({"qid": ["2"], "query": ["Gamma"]})).query_graph[0]
    ranking = pd.DataFrame({"qid": ["1", "2"], "docno": ["a", "b"], "query": ["Which limit?", np.nan]})
    result = GraphBuilder()(with_objects(ranking, query_graph=[None, graph]))
    assert result.query_graph[1] == graph
    assert "limit" in result.query_graph[0].amr.labels


def test_both_sides_of_a_ranking_are_built_each_once():
    ranking = [{"qid": q, "docno": d, "query": f"Query{q}", "text": f"Text{d}"} for q in "12" for d in "abc"]
    result = build(ranking, side="both")
    assert roots(result, "query_graph") == ["query1"] * 3 + ["query2"] * 3
    assert roots(result, "graph") == ["texta", "textb", "textc"] * 2
    assert roots(build(ranking, side="document"), "graph") == ["texta", "textb", "textc"] * 2
    assert "query_graph" not in build(ranking, side="document").columns


def test_columns_kept_from_topics_are_not_documents():
    ranking = [{"qid": q, "docno": d, "query": f"Query{q}", "title": f"Title{q}"} for q in "12" for d in "abc"]
    for loaded, expected in (
        ({"body": "Text{docno}"}, ["texta", "textb", "textc"]),
        ({"body": "Body{qid}", "text": "Text{docno}"}, ["texta", "textb", "textc"]),
        ({"title": "Title{docno}", "text": "Text{docno}"}, ["titlea", "titleb", "titlec"]),
        ({"title": "", "text": "Alike"}, ["alike"] * 3),
    ):
        rows = [{**row, **{name: text.format(**row) for name, text in loaded.items()}} for row in ranking]
        result = build(rows, side="both")
        assert roots(result, "query_graph") == ["query1"] * 3 + ["query2"] * 3
        assert roots(result, "graph") == expected * 2


def test_a_post_that_the_parser_fails_on_is_named_and_keeps_its_formulas_and_the_others_are_built():
    rows = [{"docno": str(i), "text": f"Word{i} $x$"} for i in range(9)]
    rows[4]["text"] = "explode $a+b$"
    with pytest.warns(MathAMRWarning, match="post '4': parser one-word failed.*RecursionError: too deep") as caught:
        result = build(rows)
    assert len(caught) == 1
    assert roots(result, "graph") == [*(f"word{i}" for i in range(4)), "amr-empty", *(f"word{i}" for i in range(5, 9))]
    assert result["graph"][4].trees()[0].slt is not None

    class Lazy(OneWordParser):
        def parse_posts(self, posts):
            return super().parse_posts(posts)[:-1]

    with pytest.warns(MathAMRWarning, match="0 graphs for 1 posts"):
        result = GraphBuilder(Lazy())(pd.DataFrame([{"docno": "1", "text": "x"}]))
    assert roots(result, "graph") == ["amr-empty"]
    with pytest.warns(MathAMRWarning, match="post '1': it cannot be read"):
        result = build([{"docno": "1", "text": 12}, {"docno": "2", "text": "Good"}])
    assert roots(result, "graph") == ["nothing", "good"]


def test_a_parse_that_cannot_carry_trees_is_left_out():
    class Torn(OneWordParser):
        def parse_posts(self, posts):
            amr = decode_penman("(a / b)")
            return [type(amr)(("b", "lost"), ("a", "l"), ())] * len(posts)

    with pytest.warns(MathAMRWarning, match="post '1': its parse"):
        result = GraphBuilder(Torn())(pd.DataFrame([{"docno": "1", "text": "x $y$"}]))
    assert result["graph"][0].amr.labels[:2] == ("amr-empty", "FORMULA_0")


def test_a_formula_that_no_converter_accepts_leaves_its_placeholder(monkeypatch):
    def fail(latex, macros):
        raise RuntimeError("no tree")

    monkeypatch.setattr(building_module, "trees_of_posts", fail)
    with pytest.warns(MathAMRWarning, match="post '1': the formula 'y' has no trees"):
        result = build([{"docno": "1", "text": "x $y$"}])
    assert result["graph"][0].amr.labels == ("x", "FORMULA_0")


@pytest.mark.parametrize(
    "text", ["", "\x00\x07", "<p", "$", "$$", "&", "\\begin{", "<span class='math-container'>", "FORMULA_0"]
)
def test_hostile_posts_give_graphs_with_the_real_parser(text):
    [graph] = GraphBuilder()(pd.DataFrame([{"docno": "1", "html": text}]))["graph"]
    assert type(graph).from_penman(graph.to_penman()) == graph


def test_the_real_parser_gives_a_node_for_each_formula_of_a_long_post():
    html = (
        "<p>"
        + " and ".join(f'we have <span class="math-container" id="{i}">x_{{{i}}}</span>' for i in range(100))
        + ".</p>"
    )
    [graph] = GraphBuilder()(pd.DataFrame([{"docno": "1", "html": html}]))["graph"]
    pairs = graph.trees()
    assert all(pair.slt is not None and pair.opt is not None for pair in pairs)
    assert graph.formula_ids == tuple(map(str, range(100)))


@pytest.mark.parametrize(
    ("columns", "added"),
    [
        (["docno", "text"], ["graph"]),
        (["html"], ["graph"]),
        (["qid", "query"], ["query_graph"]),
        (["qid", "title", "body"], ["query_graph"]),
        (["qid", "query", "formula_id"], ["query_formula_id", "query_graph"]),
        (["qid", "query", "docno", "score"], ["query_graph"]),
    ],
)
def test_an_empty_frame_shows_its_columns_without_a_parser(columns, added):
    builder = GraphBuilder("no such parser")
    assert list(builder(pd.DataFrame(columns=columns)).columns) == [*columns, *added]
    with pytest.raises(ConfigError, match="no such parser"):
        builder(pd.DataFrame([{"text": "x"}]))
    for options in ({"formulas": "all"}, {"side": "left"}, {"context": "body"}, {"batch_size": 0}):
        with pytest.raises(ConfigError):
            GraphBuilder(**options)


@pytest.mark.parametrize("columns", [["docno"], ["qid"], ["qid", "docno", "text"], []])
def test_a_frame_without_text_is_refused_with_what_is_needed(columns):
    with pytest.raises(pt.validate.InputValidationError, match="GraphBuilder"):
        GraphBuilder()(pd.DataFrame(columns=columns))


TWO = ["What is $x$?", "What is a group?"]


@pytest.mark.parametrize("docnos", [{}, {"docno": ["d1", "d2"]}])
def test_a_second_text_of_a_qid_is_reported_and_the_first_is_built(docnos: dict[str, list[str]]) -> None:
    frame = pd.DataFrame({"qid": ["q1", "q1"], "query": TWO, **docnos})
    with pytest.warns(MathAMRWarning, match=r"only the first of several texts .*'q1'"):
        built = GraphBuilder()(frame)
    assert [graph.text for graph in built["query_graph"]] == ["What is FORMULA_0?"] * 2


@pytest.mark.parametrize(
    "frame",
    [
        {"qid": ["q1", "q1"], "query": [TWO[0], TWO[0]]},
        {"qid": ["q1", "q2"], "query": TWO},
        {"qid": ["q1", "q1"], "query": [TWO[0], None], "docno": ["d1", "d2"]},
    ],
    ids=["the same text twice", "two queries", "a row without text, as after + of two systems"],
)
def test_one_text_for_each_qid_is_nothing_to_report(
    frame: dict[str, list[str]], recwarn: pytest.WarningsRecorder
) -> None:
    GraphBuilder()(pd.DataFrame(frame))
    assert not [warning for warning in recwarn if issubclass(warning.category, MathAMRWarning)]


TestGraphBuilder = pt.testing.transformer_test_class(GraphBuilder.example)
TestGraphBuilderOfBothSides = pt.testing.transformer_test_class(lambda: GraphBuilder(side="both"))
