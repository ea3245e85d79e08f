"""Build ``pyterrier_mathamr/data/sample`` from the hand-written sources, in the layout of the ARQMath release.

Run ``python tools/sample/build.py``; the output is reproducible byte for byte. Formula ids follow the posts, and
formulas that look the same (equal Presentation MathML) share a visual id.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from formulas import POST_COLUMNS, TOPIC_COLUMNS, Formulas, mathml, slt_cell, table
from post_files import posts_xml
from source import Question, read_questions, read_topics
from topic_files import answer_judgments, formula_judgments, topic_rows, topics_xml

HERE = Path(__file__).resolve().parent
TARGET = HERE.parents[1] / "pyterrier_mathamr" / "data" / "sample"


def readme(questions: list[Question], content: dict[str, str], formulas: int, pictures: int) -> str:
    """Return the description of the sample with its counts."""
    counts = {"formulas": formulas, "pictures": pictures, "questions": len(questions)}
    counts |= {"answers": sum(len(q.answers) for q in questions)}
    texts = {}
    for task in ("1", "2"):
        rows = [line.split("\t") for line in content[f"qrels/qrels.arqmath-sample-task{task}.txt"].splitlines()]
        counts |= {f"task{task}": len(rows), "topics": len({row[0] for row in rows})}
        texts[f"grades{task}"] = " / ".join(str(sum(row[3] == grade for row in rows)) for grade in "0123")
    return (HERE / "DATA-README.md").read_text("utf-8").format(**counts, **texts)


def files() -> dict[str, str]:
    """Return the contents of the sample by path below its folder."""
    questions, topics = read_questions(HERE / "questions"), read_topics(HERE / "topics")
    of_posts, of_topics = Formulas(), Formulas(prefix="q_", dollars=True)
    posts, ids = posts_xml(questions, of_posts)
    task1, task2 = topic_rows(topics, of_topics)
    by_picture: dict[str, list[str]] = {}
    for number, *_, latex in of_posts.rows:
        by_picture.setdefault(mathml(latex), []).append(number)
    visual = {numbers[0]: str(i) for i, numbers in enumerate(by_picture.values(), 1)}
    keys = [(*row[:4], "", *[visual[by_picture[mathml(row[-1])][0]]] * 2, "") for row in of_posts.rows]
    content = {
        "Posts.V1.3.xml": posts,
        "latex_representation_v3/1.tsv": table(
            POST_COLUMNS, ((*key, row[-1]) for key, row in zip(keys, of_posts.rows, strict=True))
        ),
        "slt_representation_v3/1.tsv": table(
            POST_COLUMNS, ((*key, slt_cell(row[-1])) for key, row in zip(keys, of_posts.rows, strict=True))
        ),
        "topics/Topics_Task1_sample.xml": topics_xml(task1),
        "topics/Topics_Task2_sample.xml": topics_xml(task2),
        "topics/Topics_Formulas_Latex_sample.tsv": table(TOPIC_COLUMNS, of_topics.rows),
        "topics/Topics_Formulas_SLT_sample.tsv": table(
            TOPIC_COLUMNS, ((*row[:-1], slt_cell(row[-1])) for row in of_topics.rows)
        ),
        "qrels/qrels.arqmath-sample-task1.txt": answer_judgments(topics, ids),
        "qrels/qrels.arqmath-sample-task2.txt": formula_judgments(topics, by_picture),
    }
    return content | {"README.md": readme(questions, content, len(of_posts.rows), len(by_picture))}


def main() -> None:
    """Write the sample; an old one is replaced only if the sources are valid."""
    parser = argparse.ArgumentParser(description="Build the bundled sample collection from its hand-written sources.")
    parser.add_argument("--out", type=Path, default=TARGET, help="folder to write (default: the package's data)")
    target: Path = parser.parse_args().out
    content = files()
    for name in sorted({path.split("/")[0] for path in content if "/" in path}):
        shutil.rmtree(target / name, ignore_errors=True)
    for path, text in content.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_bytes(text.encode("utf-8"))
    size = sum(len(text.encode("utf-8")) for text in content.values())
    print(f"{target}: {len(content)} files, {size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
