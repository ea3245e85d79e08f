"""``mathamr demo``: the bundled sample, measured, searched and explained; or its page."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .engine import results_table, serve
from .options import quiet_option

if TYPE_CHECKING:
    import pandas as pd

    from pyterrier_mathamr.engine import SearchEngine

QUESTION = r"How can I show that $\sqrt2$ is irrational?"
PATTERN = r"\int_0^\infty ?f\,dx"
RERANKED = 100
ABOUT = "222 answers to 97 questions, written for this package."
_NOTE = f"""\
222 answers, 20 topics, 1,273 judgments, written for this package: the table shows that everything works, not how well.
`% {RERANKED}` re-ranks that many answers, other rows rank all of them.
* differs from BM25, tuned for mathematics (two-sided paired t-test, p < 0.05 after Bonferroni)."""
_GO_ON = """\
To go on:
  mathamr demo --serve               this sample as a page in the browser
  mathamr build NOTES -o my.engine   your own notes: a folder of LaTeX, Markdown, notebooks and the like
  mathamr serve my.engine            a page that searches them
  mathamr --help                     all commands"""


@click.command(short_help="Try everything on the bundled sample.")
@click.option("--serve", "page", is_flag=True, help="Only open a page that searches the sample.")
@quiet_option
@click.pass_context
def demo(context: click.Context, page: bool, quiet: bool) -> None:
    """Compare systems on the bundled sample, answer a question and explain why, and find formulas by a pattern.

    Needs no data and no network, and leaves nothing behind.
    """
    from pyterrier_mathamr.arqmath import markdown_table

    with tempfile.TemporaryDirectory(prefix="mathamr-demo-") as name:
        engine = build_sample_engine(Path(name) / "sample.engine", verbose=not quiet)
        if page:
            context.invoke(serve, engine=engine.path, title="The sample", about=ABOUT, open_page=True)
            return
        click.echo(f"{markdown_table(compare_systems(engine, Path(name)))}\n\n{_NOTE}\n")
        click.echo(f"Question: {QUESTION}\nIts best answer, and why:\n{_answer(engine)}\n")
        formulas = results_table(engine.search_formula(PATTERN, k=2), formula=True)
        click.echo(f"Pattern: {PATTERN}\nFormulas with such a part, and what ?f stands for:\n{formulas}\n")
        click.echo(_GO_ON)


def build_sample_engine(path: Path, *, verbose: bool, **options: Any) -> SearchEngine:
    """Build an engine of the sample's answers, each under the title of its question."""
    from pyterrier_mathamr.arqmath import ARQMathCollection
    from pyterrier_mathamr.arqmath.collection import SAMPLE
    from pyterrier_mathamr.engine import SearchEngine

    collection = ARQMathCollection(SAMPLE)
    titles = {question.id: question.title for question in collection.questions()}
    answers = [{"docno": post.id, "title": titles[post.parent_id], "html": post.body} for post in collection.answers()]
    return SearchEngine.build(answers, path, verbose=verbose, **options)


def compare_systems(engine: SearchEngine, folder: Path) -> pd.DataFrame:
    """Measure the ways to search the engine's posts, and test them against the BM25 tuned for mathematics."""
    import pyterrier as pt

    from pyterrier_mathamr.arqmath import TASK1_MEASURES
    from pyterrier_mathamr.sparse import BM25Index

    snapshot = engine.snapshot()
    posts = [{"docno": post.docno, "title": post.title, "html": post.html} for post in snapshot.indexes.posts]
    tuned = BM25Index(folder / "tuned.bm25", preset="math").index(posts).retriever()
    rerank = snapshot.encode() >> snapshot.indexes.vectors.scorer()
    systems = {
        "BM25": BM25Index(folder / "standard.bm25").index(posts).retriever(),
        "BM25, tuned for mathematics": tuned,
        "MathAMR+": snapshot.mathamr(),
        f"tuned BM25 % {RERANKED}, then MathAMR+": tuned % RERANKED >> rerank,
        "search engine: words and MathAMR+": snapshot.retriever(),
    }
    dataset = pt.get_dataset("arqmath:sample/task1")
    table: pd.DataFrame = pt.Experiment(
        list(systems.values()),
        dataset.get_topics("text"),
        dataset.get_qrels(),
        TASK1_MEASURES,
        names=list(systems),
        baseline=1,
        correction="bonferroni",
        filter_by_qrels=True,
    )
    return table


def _answer(engine: SearchEngine) -> str:
    """Show the best answer to the question, and the parts of its score."""
    from pyterrier_mathamr.explain.explanation import table_of

    best = engine.search(QUESTION, k=1)
    return f"{results_table(best, formula=False)}\n{table_of(engine.explain(QUESTION, best['docno'][0]), shown=5)}"
