"""Lean: the declarations of files by their text, and the statements of a blueprint in them."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from post_helpers import BOMB, latex_of, posts_of, units, write

from pyterrier_mathamr._common.feedback import gathered
from pyterrier_mathamr.posts import Document, plain_text, post_from_html, source_entries

PROJECT = Path(__file__).parent / "corpus" / "lean"


def read(source: Path, **options) -> dict[str, Document]:
    return {post.docno: post for post in posts_of(source, **options) if isinstance(post, Document)}


def declared(folder: Path, text: str) -> dict[str, Document]:
    """Return the declarations of a file by their names."""
    return {docno.partition("#")[2]: post for docno, post in units(folder, {"A.lean": text}).items()}


def lines_of(post: Document) -> list[str]:
    return plain_text(post_from_html(post.html)).split("\n")


def test_each_declaration_is_a_post_with_kind_module_section_and_line() -> None:
    places = {
        docno: (post.origin.kind, post.origin.line, post.origin.section)
        for docno, post in read(PROJECT).items()
        if ".lean" in docno
    }
    assert places == {
        "Parity/Basic.lean": ("module", 3, ""),
        "Parity/Basic.lean#Parity.IsTwice": ("def", 20, "Parity"),
        "Parity/Basic.lean#Parity.isTwice_double": ("theorem", 27, "Parity"),
        "Parity/Basic.lean#Parity.isTwice_add": ("theorem", 30, "Parity"),
        "Parity/Basic.lean#Parity.abs_isTwice": ("lemma", 43, "Parity"),
        "Parity/Basic.lean#Parity.half": ("def", 49, "Parity"),
        "Parity/Basic.lean#IsTwice.zero'": ("theorem", 54, "Parity"),
        "Parity/Walk.lean#LatticeWalk": ("structure", 6, ""),
        "Parity/Walk.lean#LatticeWalk.IsClosed": ("class", 18, "Closed walks"),
        "Parity/Walk.lean#LatticeWalk.Turn": ("inductive", 21, "Closed walks"),
        "Parity/Walk.lean#LatticeWalk.instInhabitedTurn": ("instance", 24, "Closed walks"),
        "Parity/Walk.lean#LatticeWalk.instEmptyClosed": ("instance", 26, "Closed walks"),
        "Parity/Walk.lean#LatticeWalk.isTwice_length": ("theorem", 30, "Closed walks"),
        "Parity/Walk.lean#LatticeWalk.recurrent": ("axiom", 34, "Closed walks"),
    }


def test_a_post_has_signature_variables_claim_docstring_and_the_words_of_the_name() -> None:
    posts = read(PROJECT)
    assert lines_of(posts["Parity/Basic.lean#Parity.isTwice_double"]) == [
        "theorem Parity.isTwice_double : IsTwice (k + k)",
        "variable {M : Type u} [AddCommMonoid M] (k : M)",
        r"$\text{IsTwice}(k + k)$",
        "The double of anything is even.",
        "parity is twice double",
    ]
    assert lines_of(posts["Parity/Walk.lean#LatticeWalk"])[1:4] == [
        "where",
        "/-- The number of steps. -/",
        "length : ℕ",
    ]
    assert latex_of(posts["Parity/Basic.lean"]) == ["n", "k"]


@pytest.mark.parametrize(
    ("source", "signature"),
    [
        ("theorem foo [Group G] (x : G) : x * x⁻¹ = 1 := by simp", "theorem foo [Group G] (x : G) : x * x⁻¹ = 1"),
        ("def f (n : ℕ := 3) : ℕ :=\n  n", "def f (n : ℕ := 3) : ℕ"),
        ("def f : ℕ → ℕ\n  | 0 => 1\n  | n + 1 => n", "def f : ℕ → ℕ"),
        ("lemma le (a b : ℤ) :\n    |a| ≤ b ∨\n    |b| ≤ |a| := by omega", "lemma le (a b : ℤ) : |a| ≤ b ∨ |b| ≤ |a|"),
        ("theorem foo.{u, v} (α : Type u) : True := trivial", "theorem foo (α : Type u) : True"),
        ("@[simp, to_additive (attr := grind =)]\nprotected theorem foo : p := h", "theorem foo : p"),
        ("private noncomputable def f : ℝ := x", "def f : ℝ"),
        ("theorem f : a /- ( /- := -/ -/ = -- := by\n  b := by rfl", "theorem f : a = b"),
        ('def f : "a := b".length = 6 := rfl', 'def f : "a := b".length = 6'),
        ("def f : ')' = c := rfl", "def f : ')' = c"),
        ("instance (priority := low) foo : Add α where\n  add := f", "instance foo : Add α"),
        ("axiom choice : Nonempty α\n\n#check choice", "axiom choice : Nonempty α"),
        ("open Nat in\n/-- D. -/ theorem foo : p := h", "theorem foo : p"),
        ("set_option maxHeartbeats 400 in\ntheorem foo : p := h", "theorem foo : p"),
        ("abbrev «a b» : Type := ℕ", "abbrev «a b» : Type"),
        ("theorem foo\n  (h : p)\n  : p\n:= h", "theorem foo (h : p) : p"),
    ],
)
def test_a_signature_ends_before_the_proof(tmp_path, source, signature) -> None:
    [post] = declared(tmp_path, source).values()
    assert lines_of(post)[0] == signature


@pytest.mark.parametrize(
    "text",
    [
        "/- theorem a : p := h /- -/ theorem b : p := h -/",
        'def s := "\ntheorem a : p := h"',
        "def s := r#\"\ntheorem a : \" p\"#",
        "/-! theorem a : p := h -/",
        "example : p := h",
        "macro \"m\" : command => `(\n  theorem a : p := h)",
        "def s := 1 -- theorem a : p := h",
        "#align a b",
        "alias a := b",
    ],
)  # fmt: skip
def test_text_that_declares_nothing_is_no_declaration(tmp_path, text) -> None:
    assert set(declared(tmp_path, text)) <= {"s", ""}


def test_a_file_that_only_imports_has_no_posts_and_is_no_error(tmp_path) -> None:
    assert posts_of(write(tmp_path, {"A.lean": "import B\n"})) == []


def test_names_have_the_namespaces_in_which_they_are_declared(tmp_path) -> None:
    text = """namespace A.B
theorem one : p := h
end B
section C
theorem two : p := h
namespace D
theorem _root_.three : p := h
mutual
theorem E.four : p := h
end
end D
end C
end A
end Unopened
theorem five : p := h
theorem five : q := h"""
    assert list(declared(tmp_path, text)) == ["A.B.one", "A.two", "three", "A.D.E.four", "five", "five-2"]


@pytest.mark.parametrize(
    ("statement", "variables"),
    [
        ("theorem a (h : x = y) : p", "{G : Type*} [Group G] (x y : G)"),
        ("theorem a (x : ℕ) : x = z", ""),
        ("theorem a : ∀ x : ℕ, x = 0", ""),
        ("theorem a : f.map y = 1", "{G : Type*} [Group G] (y : G) {H : Type*} [Group H] [Action G H] (f : G → H)"),
        ("theorem a (h : H) : p", "{H : Type*} [Group H]"),
        ("structure A where\n  size : H", "{H : Type*} [Group H]"),
    ],
)
def test_a_signature_has_the_variables_that_it_mentions(tmp_path, statement, variables) -> None:
    text = f"""section
variable (x z : Int)
end
variable {{G : Type*}} [Group G] (x y : G)
variable {{H : Type*}} [Group H] [Action G H] {{f : G → H}} {{x}}
variable (f) (x)
variable (q : ℕ) in
theorem before : q = q := rfl
{statement} := by
  exact q"""
    posts = declared(tmp_path, text.replace(" := by\n  exact q", "") if "where" in statement else text)
    lines = [line for line in lines_of(posts["before"]) if line.startswith("variable")]
    assert lines == ["variable (q : ℕ)"]
    found = [line for line in lines_of(posts["A" if "where" in statement else "a"]) if line.startswith("variable")]
    assert [line.replace("(x : G) (y", "(x y").replace("(y : G) (x : G)", "(x y : G)") for line in found] == (
        [f"variable {variables}"] if variables else []
    )


@pytest.mark.parametrize(
    ("claim", "latex"),
    [
        ("∑ i ∈ s, f i ≤ (n : ℝ) ^ 2", r"\sum_{i ∈ s} f(i) ≤ n^{2}"),
        ("a ^ (m + n) = a ^ m * a ^ n", r"a^{m + n} = a^{m} \cdot a^{n}"),
        ("Real.sqrt (x + 1) = s.card", r"\sqrt{x + 1} = \text{card}(s)"),
        ("f (g x) y = f⁻¹ ↑z", "f(g(x), y) = f^{-1}(z)"),
        ("{x | p x} ⊆ s \\ t", r"\{x | p(x)\} ⊆ s \setminus t"),
        ("#A ≤ 2 ∧ is_even n", r"\# A ≤ 2 ∧ \text{is even}(n)"),
        ("Continuous f", ""),  # words
    ],
)
def test_the_claim_of_a_theorem_is_a_formula_and_the_type_of_a_definition_is_none(tmp_path, claim, latex) -> None:
    theorem, definition = declared(tmp_path, f"theorem a : {claim} := by simp\ndef b : {claim} := h").values()
    assert [" ".join(each.split()) for each in latex_of(theorem)] == [latex] * bool(latex)
    assert latex_of(definition) == []


# ---- blueprints


def test_a_statement_that_names_a_declaration_is_in_its_post() -> None:
    posts = read(PROJECT)
    joined = posts["Parity/Basic.lean#Parity.isTwice_add"]
    assert plain_text(post_from_html(joined.title)) == "Lemma 1 (Sums)"
    assert lines_of(joined)[0] == "theorem Parity.isTwice_add (hm : IsTwice m) (hn : IsTwice n) : IsTwice (m + n)"
    assert "If $a$ and $b$ are divisible by two, then so is $a+b$." in lines_of(joined)
    ids = [formula.id for formula in post_from_html(joined.html).formulas]
    assert ids == [f"{joined.docno}#{number}" for number in range(5)]
    assert [docno for docno in posts if docno.startswith("blueprint")] == ["blueprint/content.tex#polya"]


def test_a_statement_is_a_post_again_when_its_declaration_is_gone(tmp_path) -> None:
    lemma = r"\begin{lemma}\label{l}\lean{A.b}\leanok %s. \end{lemma}"
    assert list(units(tmp_path, {"a.tex": lemma % "Words", "A.lean": "theorem A.b : p := h"})) == ["A.lean#A.b"]
    first = {entry.key: entry.digest for entry in source_entries(tmp_path)}
    assert "Other words." in lines_of(units(tmp_path, {"a.tex": lemma % "Other words"})["A.lean#A.b"])
    second = {entry.key: entry.digest for entry in source_entries(tmp_path)}
    assert all(first[key] != second[key] for key in first)
    assert list(units(tmp_path, {"A.lean": "theorem A.c : p := h"})) == ["A.lean#A.c", "a.tex"]


def test_of_two_statements_of_one_declaration_the_second_remains_a_post(tmp_path) -> None:
    statement = r"\begin{lemma}\label{%s}\lean{A.b, A.c} Words %s. \end{lemma}"
    latex = statement % ("one", "one") + statement % ("two", "two")
    posts = units(tmp_path, {"a.tex": latex, "A.lean": "theorem A.b : p := h\ntheorem A.c : p := h"})
    assert list(posts) == ["A.lean#A.b", "A.lean#A.c", "a.tex#two"]
    assert all("Words one." in lines_of(posts[docno]) for docno in ("A.lean#A.b", "A.lean#A.c"))


def test_a_blueprint_that_cannot_be_read_leaves_the_declarations(tmp_path) -> None:
    files = {
        "a.tex": rf"\begin{{lemma}}\lean{{A.b}} {BOMB}\a \end{{lemma}}",
        "b.sty": r"\newcommand{\names}[1]{\lean{#1}}",
        "A.lean": "theorem A.b : p := h",
    }
    with gathered():
        assert "A.lean#A.b" in units(tmp_path, files)


def test_whole_files_are_one_post_each_and_keep_their_statements() -> None:
    assert list(read(PROJECT, whole_files=True)) == ["Parity/Basic.lean", "Parity/Walk.lean", "blueprint/content.tex"]


# ---- hostile files

PIECES = [
    "theorem ", "lemma x", "def ", "structure A where\n", "inductive", "class ", "instance ", ": ", ":= ", "where", "|",
    "\n", "\n  ", "(", ")", "{", "}", "[", "]", "⟨", "/-", "-/", "/--", "/-!", "-- ", '"', "'", "r#\"", "«", "»", "\\",
    "namespace A\n", "section\n", "end\n", "end A.B", "mutual", "variable (x : α) ", "variable {x}", "[Foo x] ", "in ",
    "open A in ", "@[simp]", "private ", "#align ", "x.y.z", "x'", "₁", "⁻¹", "∑ i ∈ s, ", "^", "$", "`", "FORMULA_0",
    "∀ x, ", "fun x ↦ ", "deriving ", "axiom ", ".{u}", "\ud7ff", "\x00", "λ", "𝓝", "1.5",
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_any_text_is_read(tmp_path_factory, pieces) -> None:
    folder = write(tmp_path_factory.mktemp("any"), {"A.lean": "theorem a : p := h\n" + "".join(pieces)})
    with gathered():
        found = posts_of(folder)
    assert found
    assert all(isinstance(post, Document) for post in found), found


@pytest.mark.parametrize(
    "text",
    [
        "/-" * 50_000,
        '"' * 100_001,
        '\\"' * 50_000,
        "«" * 100_000,
        "r" + "#" * 100_000,
        "namespace a\n" * 10_000 + "theorem b : p := h\n" * 50,
        "variable (x : α)\n" * 5_000 + "variable [Foo x]\n" * 5_000 + "axiom a : x = x\n" * 50,
        "theorem a : " + "(" * 100_000,
        "theorem a : " + "∑ i, " * 20_000,
        "theorem a : " + "f " * 50_000,
        "variable " + "(a : " * 20_000,
        "@[" * 50_000,
        "theorem a : p\n" + "@[x] " * 20_000,
    ],
    ids=range(13),
)
def test_a_long_text_that_nests_or_never_ends_is_read_in_linear_time(text) -> None:
    from pyterrier_mathamr.posts.lean import lean_units

    lean_units(text, whole=False)
