r"""``mathamr search``: ask an engine one question, or all topics of a file."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyterrier_mathamr._common.feedback import progress

from .options import FILE, FOLDER, NEW, SYSTEMS, counted, quiet_option
from .topic_files import Topic, read_topic_file

if TYPE_CHECKING:
    import pandas as pd
    import pyterrier as pt

    from pyterrier_mathamr.engine import EngineSnapshot

_INDENT = 13


@click.command(short_help="Search an engine, with one query or a file of topics.")
@click.argument("engine", type=FOLDER)
@click.argument("query", required=False)
@click.option("-k", type=click.IntRange(1), help="Results, by default 10; 1000 for each topic of a file.")
@click.option(
    "--system", type=click.Choice(SYSTEMS), default="blend", show_default=True, help="Rank by both, words or graphs."
)
@click.option("--formula", is_flag=True, help="QUERY is one formula; find formulas like it.")
@click.option("--explain", is_flag=True, help="Say what contributes to the score of the first result.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--topics", type=FILE, help="Search with all topics of a file: ARQMath, TREC, .jsonl or .tsv.")
@click.option("--output", "-o", type=NEW, help="The run file of --topics, in TREC's format.")
@click.option("--overwrite", is_flag=True, help="Replace OUTPUT.")
@quiet_option
def search(engine: Path, query: str | None, k: int | None, topics: Path | None, quiet: bool, **options: Any) -> None:
    r"""Search ENGINE with QUERY: words, and formulas between dollars; or with the topics of a file.

    mathamr search my.engine 'why does $\sum 1/n$ diverge?'

    mathamr search my.engine --topics topics.xml -o run.txt
    """
    from pyterrier_mathamr.engine import SearchEngine

    if (query is None) == (topics is None):
        raise click.UsageError("Give a QUERY, or a file of --topics and its run file -o.")
    if query is not None and not query.strip():
        raise click.UsageError("QUERY is empty.")
    if topics is not None:
        _search_topics(SearchEngine(engine).snapshot(), topics, k or 1000, quiet=quiet, **options)
    else:
        _search(SearchEngine(engine).snapshot(), query or "", k or 10, **options)


def _search(
    engine: EngineSnapshot,
    query: str,
    k: int,
    *,
    system: str,
    formula: bool,
    explain: bool,
    as_json: bool,
    output: Path | None,
    overwrite: bool,
) -> None:
    """Answer one query."""
    from pyterrier_mathamr.explain.display import table_of

    if output is not None or overwrite:
        raise click.UsageError("-o and --overwrite are for --topics.")
    if ((formula or system != "blend") and explain) or (formula and system != "blend"):
        raise click.UsageError("--explain is for the system blend, and --formula has a system of its own.")
    if formula:
        found = engine.search_formula(query, k=k)
    else:
        found = engine.shown(query, _retriever(engine, system, k)(engine.frame(query)))
    why = engine.explain(query, found["docno"].iloc[0]) if explain and len(found) else None
    if as_json:
        for row in found.to_dict("records"):
            click.echo(json.dumps(row, ensure_ascii=False))
        if why is not None:
            parts = json.loads(why.parts.to_json(orient="records"))
            click.echo(json.dumps({"explains": why.docno, "score": why.score, "parts": parts}, ensure_ascii=False))
        return
    click.echo(_table(found, formula) or "Nothing was found.")
    if why is not None:
        click.echo(f"\n{table_of(why, width=_width())}")


def _search_topics(
    engine: EngineSnapshot,
    topics: Path,
    k: int,
    *,
    system: str,
    formula: bool,
    output: Path | None,
    overwrite: bool,
    quiet: bool,
    **others: bool,
) -> None:
    """Search with each topic of a file, and write the run."""
    from pyterrier_mathamr.arqmath import write_run

    if output is None:
        raise click.UsageError("--topics needs the run file -o.")
    if formula or any(others.values()):
        raise click.UsageError("--formula, --explain and --json are for one QUERY.")
    if output.exists() and not overwrite:
        raise click.ClickException(f"{output} exists already; --overwrite replaces it.")
    if not output.absolute().parent.is_dir():
        raise click.ClickException(f"{output.parent} is no folder; create it first.")
    read = read_topic_file(topics)
    retriever = _retriever(engine, system, k)
    run = _run(engine, retriever, progress(read, "searching", "topics", verbose=not quiet))
    write_run(run, output, name=f"mathamr-{system}")
    found = run["qid"].nunique()
    click.echo(f"{output}: {counted(len(run), 'result')} for {counted(found, 'topic')}")
    if found < len(read):
        nothing = [topic.qid for topic in read if topic.qid not in set(run["qid"])]
        click.echo(f"Nothing was found for {counted(len(nothing), 'topic')}: {', '.join(nothing[:5])}")


def _run(engine: EngineSnapshot, retriever: pt.Transformer, topics: Iterable[Topic]) -> pd.DataFrame:
    """Search with topics, one at a time."""
    import pandas as pd

    found = [retriever(engine.frame(topic.query).assign(qid=topic.qid))[["qid", "docno", "score"]] for topic in topics]
    run: pd.DataFrame = pd.concat(found, ignore_index=True)
    return run


def _retriever(engine: EngineSnapshot, system: str, k: int) -> pt.Transformer:
    """Return one of the retrievers of an engine."""
    makers: Mapping[str, Any] = {"blend": engine.retriever, "bm25": engine.bm25, "mathamr": engine.mathamr}
    return makers[system](num_results=k)


def _table(found: pd.DataFrame, formula: bool) -> str:
    """Write results for a terminal: rank, score, docno and title, and below them the snippet."""
    indent = " " * _INDENT
    lines = []
    for rank, row in enumerate(found.to_dict("records"), start=1):
        head = row["post_id"] if formula else f"{row['docno']}  {row['title']}"
        lines.append(f"{rank:>3}  {row['score']:6.2f}  {head}".rstrip())
        text = " ".join((row["latex"] if formula else row["snippet"]).split())
        lines += textwrap.wrap(text, _width(), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    return "\n".join(lines)


def _width() -> int:
    return min(shutil.get_terminal_size((100, 20)).columns, 110)
