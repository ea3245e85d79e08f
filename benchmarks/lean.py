r"""How Lean projects are read, and whether the words of a blueprint find its declarations.

    python benchmarks/lean.py PROJECT…

The declarations of each project are counted twice: as they are read, and by lines that begin with a keyword after the
comments and strings were blanked, which shares no code with the reader. For projects with a blueprint, each statement
that names declarations is a question, and these are its answers: BM25 with the preset for mathematics ranks all
declarations of the project, with and without the claims of theorems as formulas. The statements are in no post then.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import pyterrier_mathamr as mathamr
from pyterrier_mathamr.posts import Document, read_posts
from pyterrier_mathamr.posts.files import listed
from pyterrier_mathamr.posts.math_spans import source_texts

_DECLARES = re.compile(
    r"^[ \t]*(?:[\w.#]+(?: [^\n=]*?)? in[ \t]+)?(?:@\[(?:[^\[\]]|\[[^\[\]]*\])*\]\s*)*"
    r"(?:(?:private|protected|public|noncomputable|unsafe|partial|nonrec|local|scoped|meta)\s+)*"
    r"(?:theorem|lemma|def|abbrev|structure|class|inductive|coinductive|instance|axiom|opaque|irreducible_def)(?=\s)",
    re.MULTILINE,
)
_FORMULA = re.compile(r'<span class="math-container"[^>]*>.*?</span>', re.DOTALL)
_CLAIM = re.compile(rf"<p>{_FORMULA.pattern}</p>", re.DOTALL)
_SOURCE = re.compile(r"<pre.*?</pre>", re.DOTALL)


def blanked(text: str) -> str:
    """Blank comments and strings, character by character."""
    kept, at, depth = [], 0, 0
    while at < len(text):
        two = text[at : at + 2]
        if two == "/-" or (depth and two == "-/"):
            depth += 1 if two == "/-" else -1
            at += 2
        elif depth:
            kept.append("\n" * (text[at] == "\n"))
            at += 1
        elif two == "--":
            at = (text.find("\n", at) + 1 or len(text) + 1) - 1
        elif text[at] == '"' and text[at - 1 : at + 2] != "'\"'":
            end = re.compile(r'(?:[^"\\]|\\.)*"?', re.DOTALL).match(text, at + 1)
            at = end.end() if end else at + 1
        else:
            kept.append(text[at])
            at += 1
    return "".join(kept)


def counted(project: Path) -> None:
    """Print the declarations of a project that are read, and those that the other count finds."""
    start = time.perf_counter()
    found = [post for _, post in read_posts(project) if isinstance(post, Document)]
    seconds = time.perf_counter() - start
    read = [post for post in found if post.origin.file.endswith(".lean") and post.origin.kind != "module"]
    files = [file for file in listed(project, "").files if file.suffix == ".lean"]
    other = sum(len(_DECLARES.findall(blanked(file.read_text(encoding="utf-8")))) for file in files)
    print(f"{project.name}: {len(files):,} files of Lean, {len(read):,} declarations, {other:,} by the other count")
    print(f"    {1000 * seconds / len(found):.1f} seconds for 1,000 posts")


def questions(posts: Sequence[Document], names: dict[str, str]) -> Iterator[tuple[Document, str, set[str]]]:
    """Find statements without their proofs, and the declarations that each names."""
    for post in posts:
        named = {name.strip() for source in source_texts(post.html) for name in source.split(",")}
        if answers := {names[name] for name in named if name in names}:
            yield post, _SOURCE.sub("", post.html.partition("<p>Proof.</p>")[0]), answers


def ranked(project: Path) -> None:
    """Print the nDCG@10 of questions with words and formulas, only words, and only formulas."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "lean").mkdir()
        (Path(folder) / "latex").mkdir()
        parts: dict[str, list[Document]] = {}
        for part, endings in (("lean", [".lean"]), ("latex", [".tex", ".sty"])):
            for file in (file for file in project.rglob("*") if file.suffix in endings and ".lake" not in file.parts):
                target = Path(folder) / part / file.relative_to(project)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.read_bytes())
            parts[part] = [post for _, post in read_posts(Path(folder) / part) if isinstance(post, Document)]
        declarations = [post for post in parts["lean"] if post.origin.kind != "module"]
        names = {post.docno.partition("#")[2]: post.docno for post in declarations}
        asked = list(questions(parts["latex"], names))
        print(f"    {len(asked):,} statements name {sum(len(answers) for *_, answers in asked):,} declarations")
        for what, without in (("with claims", ""), ("without claims", _CLAIM)):
            records = [post.record() for post in declarations]
            for record in records if without else ():
                record["html"] = _CLAIM.sub("", record["html"], count=1)
            index = mathamr.BM25Index(Path(folder) / what.replace(" ", "-"), preset="math")
            index.index(records)
            cells = []
            for kind in ("all", "words", "formulas"):
                topics = [
                    {"qid": post.docno, "title": "", "body": body if kind == "all" else _FORMULA.sub(" ", body)}
                    if kind != "formulas"
                    else {"qid": post.docno, "title": "", "body": " ".join(_FORMULA.findall(body))}
                    for post, body, _ in asked
                ]
                found = index.retriever(num_results=10)(pd.DataFrame(topics))
                gains = {qid: rows.sort_values("rank")["docno"].tolist() for qid, rows in found.groupby("qid")}
                values = [_ndcg(gains.get(post.docno, []), answers) for post, _, answers in asked]
                error = np.std(values) / len(values) ** 0.5
                cells.append(f"{kind} {np.mean(values):.3f} ± {error:.3f}")
            print(f"    nDCG@10 {what:15s} {', '.join(cells)}")


def _ndcg(ranking: Sequence[str], answers: set[str]) -> float:
    gain = sum(1 / np.log2(rank + 2) for rank, docno in enumerate(ranking) if docno in answers)
    return float(gain / sum(1 / np.log2(rank + 2) for rank in range(min(10, len(answers)))))


def main() -> None:
    """Read the command line and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("projects", nargs="+", type=Path, metavar="PROJECT")
    for project in parser.parse_args().projects:
        counted(project)
        if any("\\lean{" in file.read_text(errors="replace") for file in project.rglob("*.tex")):
            ranked(project)


if __name__ == "__main__":
    main()
