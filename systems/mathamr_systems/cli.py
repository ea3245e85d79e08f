"""Commands that ``mathamr`` has where the systems are installed, by entry points.

::

    mathamr arqmath verify, arqmath stats     check and count a local copy of the ARQMath release
    mathamr doctor                            what an AMR parser's environment lacks
    mathamr draw topics, draw speed           the results of experiments
    mathamr evaluate                          measure run files against judgments, and compare them with a baseline
    mathamr experiment                        a whole experiment on a folder
    mathamr train-in-out                      train an In+Out model on formulas
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pyterrier_mathamr.extending import FILE, FOLDER, NEW, counted, drawn, quiet_option, release_at, values_of

if TYPE_CHECKING:
    import pandas as pd

    from mathamr_systems.amr.doctor import ParserName
    from mathamr_systems.experiments.measuring import Evaluation


@click.command()
@click.argument("folder", required=False, type=FOLDER)
@quiet_option
def verify(folder: Path | None, quiet: bool) -> None:
    """Read each file and check it: rows, ids, truncation.

    Ends with exit code 1 if a file is bad. It reports missing rows, but accepts them.
    """
    from mathamr_systems import verify as checked

    bad = total = 0
    for finding in checked(release_at(folder), verbose=not quiet):
        total += 1
        bad += not finding.good
        click.echo(f"{'ok ' if finding.good else 'BAD'}  {finding.role}: {finding.counts}")
        for problem in finding.problems:
            click.echo(f"     problem: {problem}")
        for note in finding.notes:
            click.echo(f"     note: {note}")
    if bad or not total:
        raise click.ClickException(
            f"Of {counted(total, 'file')}, {bad:,} failed. Replace the files listed as BAD by new copies."
            if total
            else "The folder has no file of the ARQMath release. Name the folder that contains Posts.V1.3.xml."
        )


@click.command()
@click.argument("folder", required=False, type=FOLDER)
@click.option("--year", type=click.Choice(["2020", "2021", "2022"]), default="2022", show_default=True)
@quiet_option
def stats(folder: Path | None, year: str, quiet: bool) -> None:
    """Count the rows of Table 4.3 of the MathAMR+ thesis, next to the published numbers."""
    from mathamr_systems import release_statistics
    from pyterrier_mathamr.arqmath import ARQMathCollection

    click.echo(f"{'':<50}{'here':>12}{'published':>12}")
    for row in release_statistics(ARQMathCollection(release_at(folder)), year=int(year), verbose=not quiet):
        here, published = ("–" if count is None else f"{count:,}" for count in (row.here, row.published))
        click.echo(f"{row.name:<50}{here:>12}{published:>12}" + (f"  ({row.note})" if row.note else ""))


@click.command(short_help="Report missing parts of an AMR parser, and how to install them.")
@click.option(
    "--parser", type=click.Choice(["dependency", "transition", "amrlib"]), help="Parser to check, by default all."
)
@click.option("--python", default="", help="Python of the parser's environment, as for --parser-python.")
@click.option("--model", default="", help="Name, folder or checkpoint of the model, by default the parser's usual one.")
def doctor(parser: ParserName | None, python: str, model: str) -> None:
    """Report missing parts of an AMR parser's environment, and how to install them.

    Without --parser, --python and --model apply to the transition parser. Ends with exit code 1 if a single
    parser is checked and cannot run.
    """
    from mathamr_systems import examine

    one: ParserName | None = parser or ("transition" if python or model else None)
    names: tuple[ParserName, ...] = (one,) if one else ("dependency", "transition", "amrlib")
    for name in names:
        click.echo(f"parser {name}")
        findings = examine(name, python, model)
        for finding in findings:
            mark = "ok     " if finding.good else "MISSING" if finding.needed else "note   "
            click.echo(f"{mark}  {finding.what}" + ("" if finding.good else f"\n         {finding.remedy}"))
        if one and not all(finding.good or not finding.needed for finding in findings):
            raise click.ClickException(f"The parser {one} cannot run yet. Install the parts listed as MISSING above.")


@click.command("topics")
@click.argument("by_topic", type=FILE)
@click.argument("baseline")
@click.argument("system")
@click.option(
    "--measure", required=True, help="Name of the measure, in the file or in the paper: nDCG', MAP', P'@10, Bpref."
)
@drawn(".png, .svg or .pdf")
def topics_command(by_topic: Path, baseline: str, system: str, measure: str, output: Path) -> None:
    """Draw for each topic how much better or worse SYSTEM is than BASELINE.

    BY_TOPIC is a file that `mathamr experiment` writes, or any .csv with name, qid, measure and value. A system of a
    study is named by its condition, too: 'OPT-only / ColBERT-style'; values are averaged over the seeds.
    """
    from mathamr_systems import draw_topic_differences, save

    click.echo(f"{save(draw_topic_differences(_read(by_topic), measure, baseline, system), output)}")


@click.command("speed")
@click.argument("tables", type=FILE, nargs=-1, required=True)
@click.option("--measure", required=True, help="Name of the measure, in the file or in the paper: nDCG'.")
@click.option("--time", default="ms per query", show_default=True, help="Column with the milliseconds per query.")
@drawn(".png, .svg or .pdf")
def speed_command(tables: tuple[Path, ...], measure: str, time: str, output: Path) -> None:
    """Draw effectiveness against queries per second.

    TABLES are .csv files that `mathamr experiment` writes, joined by name: one has the measure, one the time. Of a
    study: every-system-….csv and single-queries.csv, with --time 'p50 ms'.
    """
    from mathamr_systems import draw_speed, save

    joined = _read(tables[0])
    for file in tables[1:]:
        other = _read(file)
        shared = "system" if "system" in joined.columns and "system" in other.columns else "name"
        joined = joined.merge(other.drop(columns="name") if shared == "system" else other, on=shared)
    click.echo(f"{save(draw_speed(joined, measure, time=time), output)}")


def _read(file: Path) -> pd.DataFrame:
    """Read a table of systems, its topics as text; systems of a study are named by condition and system."""
    import pandas as pd

    texts = dict.fromkeys(("qid", "name", "measure", "condition", "system"), str)
    # A condition may have the name None, which is not a missing value.
    table: pd.DataFrame = pd.read_csv(file, dtype=texts, keep_default_na=False, na_values=[""])
    if "name" not in table.columns and "system" in table.columns:
        table = table.assign(name=table["system"])
        if "condition" in table.columns:
            full = table["condition"] + " / " + table["system"]
            table = table.assign(name=full.where(table["condition"] != "–", table["system"]))
    if "name" not in table.columns:
        raise click.UsageError(f"{file} has no column 'name'. Give a .csv file that `mathamr experiment` wrote.")
    return table


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
    evaluation = evaluate_runs(read_rankings(files), read_judgments(qrels), chosen, baseline=first)
    if by_topic:
        click.echo(evaluation.by_topic.to_csv(index=False), nl=False)
    elif as_json:
        for line in _objects(evaluation, first):
            click.echo(json.dumps(line, ensure_ascii=False))
    else:
        click.echo(_report(evaluation, first))


def _named(files: Sequence[Path]) -> dict[str, Path]:
    """Name each file by its stem, or by its path where two have the same; a file that comes twice is one."""
    by_place: dict[Path, Path] = {}
    for file in files:
        by_place.setdefault(file.resolve(), file)
    distinct = list(by_place.values())
    stems = [file.name.removesuffix(".gz").rpartition(".")[0] or file.name for file in distinct]
    return {str(file) if stems.count(stem) > 1 else stem: file for stem, file in zip(stems, distinct, strict=True)}


def _report(evaluation: Evaluation, baseline: str | None) -> str:
    """Write the means, the comparison with the baseline, and notes on both."""
    from pyterrier_mathamr.arqmath import markdown_table

    tests = {(row["name"], row["measure"]): row for row in evaluation.tests.to_dict("records")}
    means = evaluation.means.rename(columns={"name": "run"})
    for measure in list(means.columns[1:]):
        if baseline:
            means[f"{measure} reject"] = [tests.get((name, measure), {}).get("significant") for name in means["run"]]
    parts = [markdown_table(means)]
    if tests:
        columns = ["name", "measure", "difference", "better", "worse", "p", "p corrected"]
        parts.append(
            markdown_table(evaluation.tests[columns].rename(columns={"name": "run", "p corrected": "corrected"}))
        )
        text = (
            f"* differs from {baseline}: two-sided paired t-test over the topics, p < 0.05 after Bonferroni for "
            f"{counted(len(evaluation.means) - 1, 'run')}. Better and worse are numbers of topics."
        )
        parts.append(click.wrap_text(text, 80))
    notes = [f"{counted(evaluation.topics, 'judged topic')}."]
    for name, missing in evaluation.missing.items():
        if missing:
            shown = ", ".join(missing[:_NAMED]) + (", …" if len(missing) > _NAMED else "")
            notes.append(f"{name} lacks {counted(len(missing), 'topic')}, counted as 0: {shown}")
    return "\n\n".join([*parts, "\n".join(notes)])


def _objects(evaluation: Evaluation, baseline: str | None) -> Iterator[dict[str, Any]]:
    for row in evaluation.means.to_dict("records"):
        name = row.pop("name")
        line = {"run": name, "topics": evaluation.topics, "missing": evaluation.missing[name], "measures": row}
        if baseline and name != baseline:
            tests = evaluation.tests[evaluation.tests["name"] == name].drop(columns="name").set_index("measure")
            outcomes = tests.astype(object).where(tests.notna(), None)  # NaN is no JSON
            line |= {"baseline": baseline, "compared": outcomes.to_dict("index")}
        yield line


_STUDIES = "`python -m studies {}` in a clone of the repository"
_NTCIR12 = "ntcir12"
_TASKS: dict[str, Literal[1, 2, 3]] = {"1": 1, "2": 2, "3": 3}


@click.command(short_help="Run a whole experiment on a folder.")
@click.argument("folder", type=NEW)
@click.option(
    "--year", "--years", "years", help="Year of the topics and judgments, or several: 2020,2022. By default 2022."
)
@click.option(
    "--task",
    type=click.Choice([*_TASKS, _NTCIR12]),
    default="1",
    show_default=True,
    help=f"1: answers; 2: formulas; 3: one text for each topic; {_NTCIR12}: formulas of NTCIR-12 MathWiki.",
)
@click.option(
    "--systems", help="Names of systems, joined by commas (by semicolons if a name has a comma), by default all."
)
@click.option(
    "--model",
    help="Name or folder of a trained model, by default the bundled one; or how to train one: full (as in the thesis), "
    "or mini or labels (for few pairs).",
)
@click.option(
    "--set", "changes", multiple=True, metavar="OPTION=VALUE", help="One option of the training; trains a model."
)
@click.option(
    "--categories", type=FILE, help="Table of topic, difficulty, dependency and type: measure each category (task 1)."
)
@click.option(
    "--workdir", type=NEW, default=Path("mathamr-experiment"), show_default=True, help="Folder for all results."
)
@quiet_option
def experiment(
    folder: Path,
    years: str | None,
    task: str,
    systems: str | None,
    model: str | None,
    changes: tuple[str, ...],
    categories: Path | None,
    workdir: Path,
    quiet: bool,
) -> None:
    """Run a whole experiment on FOLDER, from its posts to tables.

    FOLDER is an ARQMath folder, a folder in BEIR's layout, or with --task ntcir12 a folder of NTCIR-12 MathWiki.

    In a clone of the repository, `python -m studies --list` names the studies behind the documented figures.
    """
    from mathamr_systems.experiments import run_arqmath, run_beir, run_ntcir12
    from pyterrier_mathamr.posts import BeirFolder

    if not folder.is_dir():
        study = f" To run a study, use {_STUDIES.format(f'{folder} FOLDER')}." if "/" in str(folder) else ""
        raise click.UsageError(
            f"The folder {folder} does not exist.{study or ' Name a folder of ARQMath, BEIR or NTCIR-12.'}"
        )
    options: dict[str, Any] = {"systems": names_of(systems), "verbose": not quiet}
    of_formulas = task == _NTCIR12
    if of_formulas or BeirFolder.found(folder):
        if years or changes or categories or task not in ("1", _NTCIR12):
            what = f"--task {_NTCIR12}" if of_formulas else "a folder in BEIR's layout"
            raise click.UsageError(f"Nothing is trained for {what}. Give only --systems, --model and --workdir.")
        options |= {"model": model} if model else {}
        report = (run_ntcir12 if of_formulas else run_beir)(folder, workdir, **options)
    else:
        options |= {"changes": values_of(changes), "categories": categories}
        report = run_arqmath(folder, years or "2022", workdir, task=_TASKS[task], model=model, **options)
    click.echo(report.to_markdown())


def names_of(text: str | None) -> list[str] | None:
    """Split names at commas, or at semicolons where there is one, since some names have a comma."""
    names = text.split(";" if ";" in text else ",") if text else []
    return [name.strip() for name in names if name.strip()] or None


@click.command(short_help="Train an In+Out model on formulas.")
@click.argument("formula_trees", type=FOLDER)
@click.option("--output", "-o", type=NEW, required=True, help="Folder of the new model.")
@click.option("--set", "changes", multiple=True, metavar="OPTION=VALUE", help="One of InOutOptions, such as layers=1.")
@click.option("--fresh", is_flag=True, help="Start over; do not resume an interrupted run.")
@quiet_option
def train_in_out(formula_trees: Path, output: Path, changes: tuple[str, ...], fresh: bool, quiet: bool) -> None:
    """Train encoders of formula graphs on the formulas of FORMULA_TREES, which need no judgments.

    The state after each epoch is kept next to OUTPUT until the model is finished.
    """
    from mathamr_systems import FormulaTrees, InOutOptions
    from mathamr_systems.in_out import train_in_out as train

    options = InOutOptions.from_dict(values_of(changes))
    model = train(FormulaTrees(formula_trees), output, options, fresh=fresh, verbose=not quiet)
    click.echo(f"{output}: In+Out model {model.identity[:12]}")
