"""Measure the conversion of formulas to trees: speed relative to bare XML parsing, agreement with the reference.

    python benchmarks/formula.py DATA [--repeat 5] [--store]
    python benchmarks/formula.py DATA --conformance

``DATA`` is a folder with ``formula-conformance/topics.jsonl.gz`` and ``arqmath-mini/``. Each figure is the best of
several runs over the same formulas, in CPU time of one core; the conversion alternates with lxml's parsing of the same
MathML, so that both run under the same conditions. ``--conformance`` prints instead how many trees equal the
reference converter's, by year and flag of the formula, and the causes of the others.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from conformance import conformance
from lxml import etree

from pyterrier_mathamr.formula import (
    FormulaError,
    FormulaStore,
    opt_from_mathml,
    read_formula_table,
    slt_from_mathml,
    trees_from_latex,
)

_RELEASE_ROWS = 28_000_000  # formulas of the ARQMath release


def best(run: Callable[[str], object], formulas: Sequence[str]) -> float:
    """Measure one pass over the formulas, in seconds of CPU time."""
    start = time.process_time()
    for formula in formulas:
        with suppress(FormulaError):
            run(formula)
    return time.process_time() - start


def floor(source: str) -> object:
    """Parse MathML and nothing else."""
    return etree.fromstring(source.encode(), _PARSER)


_PARSER = etree.XMLParser(recover=True, resolve_entities=False, no_network=True)


def row(name: str, run: Callable[[str], object], formulas: Sequence[str], parsed: Sequence[str], repeat: int) -> None:
    """Print formulas per second, the rate of bare parsing in the same run, and the ratio."""
    times = [(best(run, formulas), best(floor, parsed)) for _ in range(repeat)]
    seconds, bare = min(t for t, _ in times), min(t for _, t in times)
    rate, ceiling = len(formulas) / seconds, len(parsed) / bare
    print(f"{name:34s} {rate:10,.0f} /s   bare parsing {ceiling:10,.0f} /s   {ceiling / rate:5.1f} times slower")


def store(data: Path) -> None:
    """Build a store of the small collection; print rows per second and bytes per formula, also for the release."""
    slt, opt = (data / f"arqmath-mini/{kind}_representation_v3/1.tsv.gz" for kind in ("slt", "opt"))
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        built = FormulaStore.build(Path(folder) / "mini.formulas", [slt], [opt])
        seconds, count, size = (
            time.perf_counter() - start,
            len(built),
            sum(file.stat().st_size for file in built.path.rglob("*")),
        )
        table = data / "arqmath-mini/latex_representation_v3/1.tsv"
        ids = [formula.id for formula in read_formula_table(table)][:20_000]
        start = time.perf_counter()
        found = len(built.get_many(ids))
        lookups = found / (time.perf_counter() - start)
    hours = 2 * _RELEASE_ROWS / (2 * count / seconds) / 3600
    print(f"store: {2 * count / seconds:,.0f} rows/s, {size / count:.0f} bytes per formula, {lookups:,.0f} lookups/s")
    gigabytes = _RELEASE_ROWS * size / count / 1e9
    print(f"release, extrapolated ({_RELEASE_ROWS:,} formulas): {hours:.1f} h on one core, {gigabytes:.1f} GB at most")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--conformance", action="store_true", help="only compare with the reference converter")
    parser.add_argument("--store", action="store_true", help="also build and measure a FormulaStore")
    options = parser.parse_args()
    with gzip.open(options.data / "formula-conformance/topics.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    if options.conformance:
        conformance(rows)
        return
    rows = [r for r in rows if r["year"] == 2022 and r["pmml"] and r["cmml"]]
    pmml, cmml, latex = ([r[key] for r in rows] for key in ("pmml", "cmml", "latex"))
    row("SLT from Presentation MathML", slt_from_mathml, pmml, pmml, options.repeat)
    row("OPT from Content MathML", opt_from_mathml, cmml, cmml, options.repeat)
    row("SLT + OPT from LaTeX", trees_from_latex, latex, pmml, options.repeat)
    if options.store:
        store(options.data)


if __name__ == "__main__":
    main()
