"""The commands over a person's own posts, from a folder of files to answers."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from pyterrier_mathamr.cli import main
from pyterrier_mathamr.cli.engine import results_table
from pyterrier_mathamr.engine import SearchEngine

MODEL = ("--model", "mathamr-plus-mini", "-q", "--workers", "1")


def run(*arguments: str):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    notes = folder / "notes"
    notes.mkdir()
    (notes / "basel.md").write_text(
        "# Basel problem\n\nWe sum $\\sum 1/n^2$.\n\n\\begin{align}S &= 1\\\\ &= \\pi^2/6\\end{align}"
    )
    (notes / "root.txt").write_text("The number √2 is irrational: p² = 2q² has no solution.")
    result = run("build", notes, "-o", folder / "my.engine", *MODEL)
    assert result.exit_code == 0, result.output
    assert "2 posts" in result.output
    return folder / "my.engine"


@pytest.fixture
def mpnet(tmp_path, monkeypatch):
    """A stand-in for the distribution mathamr-mpnet: an encoder of its width, with drawn weights and one layer."""
    import torch

    from pyterrier_mathamr.model import bert, packed_bert

    model = tmp_path / "path" / "mathamr_mpnet" / "model"
    model.mkdir(parents=True)
    (model.parent / "__init__.py").touch()
    size = packed_bert.BertSize(30522, 514, 768, 64, 1, 12, 1e-5, relative_attention_num_buckets=32)
    (model / "config.json").write_text(json.dumps(size._asdict()))
    shutil.copyfile(packed_bert.BUNDLED_FOLDER / "tokenizer.json", model / "tokenizer.json")
    drawn = {name: torch.rand(weight.shape) - 0.5 for name, weight in bert.Bert(size).state_dict().items()}
    (model / packed_bert.PACKED).write_bytes(bert.pack(drawn))
    monkeypatch.syspath_prepend(str(tmp_path / "path"))
    monkeypatch.setattr("pyterrier_mathamr.model.text_encoder.changes_of", lambda name: None)  # it has other sizes


def test_a_small_collection_gets_the_large_model_if_its_encoder_is_installed(mpnet, tmp_path, monkeypatch) -> None:
    posts = tmp_path / "posts.jsonl"
    posts.write_text('{"id": "a", "text": "Rings and ideals"}\n{"id": "b", "text": "A group"}\n')
    built = run("build", posts, "-o", tmp_path / "large", "-q", "--workers", "1")
    assert built.exit_code == 0, built.output
    assert "mathamr-plus-text-large: its encoder is on this machine. --model mathamr-plus-text is" in built.output
    with posts.open("a") as file:
        file.write('{"id": "c", "text": "A field"}\n')
    monkeypatch.setattr("pyterrier_mathamr.cli.engine._MOST_FOR_LARGE", 2)
    assert run("update", "-o", tmp_path / "large", "-q").exit_code == 0
    assert SearchEngine(tmp_path / "large").snapshot().options.model == "mathamr-plus-text-large"
    built = run("build", posts, "-o", tmp_path / "small", "-q", "--workers", "1")
    assert (
        "The model is mathamr-plus-text: more than 2 posts. --model mathamr-plus-text-large is slower" in built.output
    )
    assert SearchEngine(tmp_path / "small").snapshot().options.model == "mathamr-plus-text"
    built = run("build", posts, "-o", tmp_path / "mini", *MODEL)
    assert "The model is" not in built.output


def test_a_folder_becomes_an_engine_that_answers(engine, monkeypatch) -> None:
    result = run("search", engine, r"why is $\sqrt{2}$ irrational?", "--explain")
    assert result.exit_code == 0, result.output
    first, snippet, *_ = result.output.splitlines()
    assert first.split()[0] == "1"
    assert first.endswith("root — root.txt:1")
    assert r"**$\sqrt{2}$** is **irrational**" in snippet
    assert "score of 'root.txt': " in result.output
    lines = [json.loads(line) for line in run("search", engine, "Basel", "--json", "-k", "1").output.splitlines()]
    assert [line["docno"] for line in lines] == ["basel.md"]
    assert "equal     root.txt:1" in run("search", engine, "--formula", "√2", "-k", "1").output
    assert "with ?a = 2" in run("search", engine, "--formula", r"\sqrt{?a}", "-k", "1").output
    wrong = run("search", engine, "--formula", r"1+\frac{a")
    assert (wrong.exit_code, r"The formula cannot be read." in wrong.output) == (1, True)
    assert "1+\\frac{a\n           ^" in wrong.output
    nothing = run("search", engine, "--formula", "two words")
    assert (nothing.exit_code, "leave out --formula" in nothing.output) == (0, True)
    found = SearchEngine(engine).search("irrational number")
    assert "**irrational**" in results_table(found, formula=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert "\x1b[1mirrational\x1b[0m" in results_table(found, formula=False), "a terminal shows matches in bold"


def test_what_is_no_engine_has_no_posts_or_was_given_wrong_options_is_an_error(engine, tmp_path) -> None:
    for command in (["serve", tmp_path], ["search", tmp_path, "x"]):
        result = run(*command)
        assert result.exit_code == 1
        assert "there is no search engine here. Build one with `mathamr build POSTS -o ENGINE`" in result.output
    (tmp_path / "posts.jsonl").write_text('{"docno": "a", "content": "x"}\n')
    result = run("build", tmp_path / "posts.jsonl", "-o", tmp_path / "e", *MODEL)
    assert (result.exit_code, "line 1: no text; give one of html" in result.output) == (1, True)
    for arguments in (
        (),
        ("",),
        ("words", "--topics", __file__, "-o", "run"),
        ("--topics", __file__),
        ("--topics", __file__, "-o", "run", "--json"),
        ("words", "-o", "run"),
        ("words", "--formula", "--explain"),
        ("words", "--system", "bm25", "--explain"),
    ):
        result = run("search", engine, *arguments)
        assert (result.exit_code, "Error: " in result.output) == (2, True), arguments


def test_an_engine_is_not_replaced_by_mistake_and_posts_are_added(engine, tmp_path) -> None:
    (tmp_path / "more.jsonl").write_text('{"id": "new", "text": "Rings and ideals"}\n')
    again = run("build", tmp_path / "more.jsonl", "-o", engine, *MODEL)
    assert again.exit_code == 1
    assert "overwrite it" in again.output
    assert "mathamr update" in again.output
    assert "reading" not in run("build", tmp_path / "more.jsonl", "-o", engine, *MODEL[:2]).output
    added = run("update", tmp_path / "more.jsonl", "-o", engine, "-q")
    assert added.output.endswith("1 new, 0 changed, 0 deleted, 0 unchanged; 3 posts\n")
    assert "new" in run("search", engine, "ideals", "-k", "1").output


def test_posts_are_deleted_by_their_docnos(engine) -> None:
    wrong = run("delete", engine, "new", "another")
    assert (wrong.exit_code, wrong.output) == (1, f"Error: {engine}: 1 id is not in it: 'another'.\n")
    assert run("delete", engine, "new").output.endswith("1 post deleted, 2 posts left\n")
    assert re.fullmatch(r".*: 2 posts, \d formulas?, [\d.]+ kB; before [\d.]+ kB\n", run("compact", engine).output)


def test_verify_reads_every_part_of_an_engine(engine, tmp_path) -> None:
    result = run("verify", engine)
    assert (result.exit_code, "search_engine.mathamr, " in result.output) == (0, True)
    copy = tmp_path / "copy.engine"
    shutil.copytree(engine, copy)
    vectors = next(copy.glob("generation-*/vectors/part-*/arrays.safetensors"))
    data = bytearray(vectors.read_bytes())
    data[-5] ^= 1
    vectors.write_bytes(data)
    result = run("verify", copy)
    assert result.exit_code == 1
    assert "vectors" in result.output


def test_topics_of_a_file_become_a_run_that_evaluate_reads(engine, tmp_path) -> None:
    topics, run_file, qrels = tmp_path / "topics.tsv", tmp_path / "run.txt", tmp_path / "qrels.txt"
    topics.write_text("t1\twhy is $\\sqrt{2}$ irrational?\nt2\tBasel problem\nt3\tof\n")
    result = run("search", engine, "--topics", topics, "-o", run_file, "--system", "bm25", "-k", "1", "-q")
    assert result.exit_code == 0, result.output
    assert f"{run_file}: 2 results for 2 topics" in result.output
    assert "Nothing was found for 1 topic: t3" in result.output
    rows = [line.split() for line in run_file.read_text().splitlines()]
    assert [(row[0], row[1], row[2], row[3], row[5]) for row in rows] == [
        ("t1", "Q0", "root.txt", "1", "mathamr-bm25"),
        ("t2", "Q0", "basel.md", "1", "mathamr-bm25"),
    ]
    both = run("search", engine, "--topics", topics, "-o", tmp_path / "blend.txt", "-k", "1", "-q")
    assert "3 results for 3 topics" in both.output
    qrels.write_text("t1 0 root.txt 3\nt2 0 basel.md 2\n")
    measured = run("evaluate", run_file, qrels, "-m", "MAP'", "--json")
    assert json.loads(measured.stdout)["measures"] == {"MAP'": 1.0}


def test_a_run_is_not_replaced_by_mistake_and_nothing_is_searched_in_vain(engine, tmp_path) -> None:
    topics, run_file = tmp_path / "topics.tsv", tmp_path / "run.txt"
    topics.write_text("t1\tBasel\n")
    run_file.write_text("precious")
    refused = run("search", engine, "--topics", topics, "-o", run_file, "-q")
    assert refused.exit_code == 1
    assert "--overwrite" in refused.output
    assert run_file.read_text() == "precious"
    assert run("search", engine, "--topics", topics, "-o", run_file, "-q", "--overwrite").exit_code == 0
    assert run_file.read_text().startswith("t1\tQ0\tbasel.md\t1\t")
    nowhere = run("search", engine, "--topics", topics, "-o", tmp_path / "no" / "run.txt", "-q")
    assert (nowhere.exit_code, "does not exist" in nowhere.output) == (1, True)
    topics.write_text("t1 Basel\n")
    unread = run("search", engine, "--topics", topics, "-o", tmp_path / "new.txt", "-q")
    assert (unread.exit_code, "has no tab" in unread.output) == (1, True)
    assert not (tmp_path / "new.txt").exists()


@pytest.mark.filterwarnings("ignore::pyterrier_mathamr._common.errors.MathAMRWarning")
def test_files_are_excluded_and_a_report_counts_formats_and_lists_faults(tmp_path) -> None:
    (tmp_path / "notes" / "drafts").mkdir(parents=True)
    (tmp_path / "notes" / "a.md").write_text("One $x$ and $\\nosuch y$.")
    (tmp_path / "notes" / "drafts" / "b.md").write_text("Not yet $z$.")
    run("build", tmp_path / "notes", "-o", tmp_path / "e", "--exclude", "drafts/", *MODEL)
    assert SearchEngine(tmp_path / "e").docnos() == ["a.md"]
    lines = run("report", tmp_path / "e", "-q").output.splitlines()
    assert lines[0].split() == ["format", "files", "posts", "formulas", "partial", "unreadable"]
    assert lines[1].split() == ["markdown", "1", "1", "2", "1", "0"]
    assert r"the command \nosuch is unknown, in 'a.md': “\nosuch y”" in lines
    faults = [json.loads(line) for line in run("report", tmp_path / "e", "-q", "--json").output.splitlines()]
    assert {"post": "a.md", "what": r"the command \nosuch is unknown", "where": r"\nosuch y"} in faults


def test_an_explanation_fits_the_terminal_and_adds_up(engine, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    question = r"why is $\sqrt{2}$ irrational, as p² = 2q² has no solution in whole numbers at all?"
    lines = run("search", engine, question, "-k", "1", "--explain").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    start = next(i for i, line in enumerate(lines) if line.startswith("score of 'root.txt': "))
    score = float(lines[start].split()[-1])
    assert sum(float(line.split()[0]) for line in lines[start + 1 :]) == pytest.approx(score, abs=0.1)
    *_, last = run("search", engine, question, "-k", "1", "--explain", "--json").stdout.splitlines()
    explained = json.loads(last)
    assert explained["explains"] == "root.txt"
    assert sum(part["contribution"] for part in explained["parts"]) == pytest.approx(explained["score"])


def test_an_arqmath_folder_becomes_an_engine_without_loading_experiments(tmp_path) -> None:
    code = (
        "import sys; from pyterrier_mathamr.cli import main\n"
        "try: main()\n"
        "finally: print([name for name in ('mathamr_systems.experiments', 'scipy.stats') if name in sys.modules])"
    )
    release = tmp_path / "ARQMath"
    release.mkdir()
    (release / "README.md").write_text("about the release")
    (release / "Posts.V1.3.xml").write_text(
        '<posts>\n<row Id="1" PostTypeId="1" Title="A sum" Body="Is x^2=1?"/>\n'
        '<row Id="2" PostTypeId="2" ParentId="1" Body="&lt;p&gt;Yes.&lt;/p&gt;"/>\n</posts>'
    )
    command = [sys.executable, "-c", code, "build", str(release), "-o", str(tmp_path / "e"), *MODEL]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "2 posts." in done.stdout
    found = json.loads(run("search", tmp_path / "e", "sum", "--json", "-k", "1").stdout)
    assert (found["docno"], found["title"], found["snippet"]) == ("1", "A sum", "Is x^2=1?")
    assert SearchEngine(tmp_path / "e").graph("2").text == "A sum\nYes."


def test_results_of_files_show_title_file_line_and_section_and_link_to_the_source(tmp_path) -> None:
    notes, macros = tmp_path / "my notes", tmp_path / "m.tex"
    notes.mkdir()
    macros.write_text(r"\newcommand{\ip}[2]{\langle #1, #2 \rangle}")
    theorem = "**Theorem 2.1 (Cauchy–Schwarz).** So $\\ip{x}{y}$ is small.\n\n*Proof.* Expand a square."
    (notes / "a.md").write_text(f"# Spaces\n\n## Products\n\nWords.\n\n{theorem}\n\n**Lemma.** Rings.\n")
    built = run("build", notes, "-o", tmp_path / "e", "--macros", macros, *MODEL)
    assert (built.exit_code, "3 posts" in built.output) == (0, True), built.output
    whole = run("build", notes, "-o", tmp_path / "w", "--whole-files", "--macros", macros, *MODEL)
    assert "1 post." in whole.output
    link = "vscode://file/{path}:{line}"
    found = run("search", tmp_path / "e", "expand a square", "-k", "1", "--link", link)
    head, address, *_ = found.output.splitlines()
    assert head.endswith("Theorem 2.1 (Cauchy–Schwarz) — a.md:7 — Spaces › Products")
    assert address.strip() == f"vscode://file{tmp_path.as_posix()}/my%20notes/a.md:7"
    assert "**square**" in found.output
    row = json.loads(
        run("search", tmp_path / "e", "square", "-k", "1", "--json", "--link", "obsidian://open?file={file}").output
    )
    assert (row["docno"], row["file"], row["line"], row["kind"]) == ("a.md#theorem-2.1", "a.md", 7, "theorem")
    assert row["link"] == "obsidian://open?file=a.md"
    formula = run("search", tmp_path / "e", r"\langle x, y \rangle", "--formula", "--link", link, "-k", "1").output
    assert "a.md:7 — Spaces › Products" in formula
    assert address.strip() in formula
    refused = run("search", tmp_path / "e", "x", "--link", "javascript:alert({line})")
    assert (refused.exit_code, "an address that begins with file, http" in refused.output) == (1, True)


def test_a_search_with_the_default_model_imports_no_torch(tmp_path) -> None:
    text = "The number $\\sqrt{2}$ is irrational.\n" + "".join(f"\n# Part {i}\n\nWords.\n" for i in range(70))
    (tmp_path / "root.md").write_text(text)  # so many posts that a scan of codes pays for one result
    result = run("build", tmp_path / "root.md", "-o", tmp_path / "my.engine", "-q", "--workers", "1")
    assert result.exit_code == 0, result.output
    program = (
        "import sys; from pyterrier_mathamr.cli import main; main(sys.argv[1:], standalone_mode=False); "
        "print([name for name in ('torch', 'faiss', 'jnius', 'scipy', 'transformers') if name in sys.modules])"
    )
    command = [sys.executable, "-c", program, "search", tmp_path / "my.engine", "why is $\\sqrt 2$ irrational?", "-k1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "root.md" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]", done.stdout
