"""``mathamr evaluate``: measure run files against judgments, and compare them with a baseline."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyterrier_mathamr._common.feedback import counted
from pyterrier_mathamr.cli.options import FILE

if TYPE_CHECKING:
    from mathamr_systems.experiments.measuring import Evaluation

_NAMED = 5  # topics that a run does not have


@click.command(short_help="Measure run files, and compare them with a baseline.")
@click.argument("runs", nargs=-1, required=True, type=FILE, metavar="RUN…")
@click.argument("qrels", type=FILE)
@click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    help='Measure, such as "nDCG\'", "P\'@5" or nDCG@10; give it once for each.',
)
@click.option("--baseline", type=FILE, help="Run against which the others are tested.")
@click.option("--by-topic", is_flag=True, help="Write each topic's values as .csv, which `mathamr draw topics` reads.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object for each run, one a line.")
def evaluate(
    runs: tuple[Path, ...], qrels: Path, measures: tuple[str, ...], baseline: Path | None, by_topic: bool, as_json: bool
) -> None:
    """Measure RUNs (TREC's or ARQMath's format) against the judgments QRELS.

    By default the measures of ARQMath, nDCG', MAP', P'@10 and Bpref, and the judged share of the first ten results. A
    prime means that documents without judgment are removed first; grades 2 and 3 are relevant. Means are over all
    topics of QRELS; a topic that a run lacks counts as 0.

    With --baseline a star marks significant differences (two-sided paired t-test, p < 0.05 after Bonferroni for the
    number of runs).

    mathamr evaluate mine.txt qrels.txt --baseline bm25.txt
    """
    from mathamr_systems.experiments.measuring import DEFAULT_MEASURES, evaluate_runs, read_judgments, read_rankings
    from pyterrier_mathamr.arqmath import parse_measure

    chosen = {name: parse_measure(name) for name in measures} or DEFAULT_MEASURES
    files = _named([*([baseline] if baseline else []), *runs])
    first = next(iter(files)) if baseline else None
    found = evaluate_runs(read_rankings(files), read_judgments(qrels), chosen, baseline=first)
    if by_topic:
        click.echo(found.by_topic.to_csv(index=False), nl=False)
    elif as_json:
        for line in _objects(found, first):
            click.echo(json.dumps(line, ensure_ascii=False))
    else:
        click.echo(_report(found, first))


def _named(files: Sequence[Path]) -> dict[str, Path]:
    """Name each file by its stem, or by its path where two have the same; a file that comes twice is one."""
    by_place: dict[Path, Path] = {}
    for file in files:
        by_place.setdefault(file.resolve(), file)
    distinct = list(by_place.values())
    stems = [file.name.removesuffix(".gz").rpartition(".")[0] or file.name for file in distinct]
    return {str(file) if stems.count(stem) > 1 else stem: file for stem, file in zip(stems, distinct, strict=True)}


def _report(found: Evaluation, baseline: str | None) -> str:
    """Write the means, the comparison with the baseline, and notes on both."""
    from pyterrier_mathamr.arqmath import markdown_table

    tests = {(row["name"], row["measure"]): row for row in found.tests.to_dict("records")}
    means = found.means.rename(columns={"name": "run"})
    for measure in list(means.columns[1:]):
        if baseline:
            means[f"{measure} reject"] = [tests.get((name, measure), {}).get("significant") for name in means["run"]]
    parts = [markdown_table(means)]
    if tests:
        columns = ["name", "measure", "difference", "better", "worse", "p", "p corrected"]
        parts.append(markdown_table(found.tests[columns].rename(columns={"name": "run", "p corrected": "corrected"})))
        text = (
            f"* differs from {baseline}: two-sided paired t-test over the topics, p < 0.05 after Bonferroni for "
            f"{counted(len(found.means) - 1, 'run')}. Better and worse are numbers of topics."
        )
        parts.append(click.wrap_text(text, 80))
    return "\n\n".join([*parts, "\n".join(_notes(found))])


def _notes(found: Evaluation) -> Iterator[str]:
    yield f"{counted(found.topics, 'judged topic')}."
    for name, missing in found.missing.items():
        if missing:
            shown = ", ".join(missing[:_NAMED]) + (", …" if len(missing) > _NAMED else "")
            yield f"{name} lacks {counted(len(missing), 'topic')}, counted as 0: {shown}"


def _objects(found: Evaluation, baseline: str | None) -> Iterator[dict[str, Any]]:
    tests = found.tests.to_dict("records")
    for row in found.means.to_dict("records"):
        name = row.pop("name")
        line: dict[str, Any] = {"run": name, "topics": found.topics, "missing": found.missing[name], "measures": row}
        if baseline and name != baseline:
            compared = {test["measure"]: _plain(test) for test in tests if test["name"] == name}
            line |= {"baseline": baseline, "compared": compared}
        yield line


def _plain(test: dict[Any, Any]) -> dict[str, Any]:
    """Return the outcome of a test without its names, NaN as null."""
    values = {str(name): value for name, value in test.items() if name not in ("name", "measure")}
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in values.items()}
