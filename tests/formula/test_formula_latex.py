r"""LaTeX as people type it; the expected trees are from the convention tables, or worked by hand."""

import pickle

import pytest
from formula_helpers import opt_brackets, slt_brackets
from hypothesis import given
from hypothesis import strategies as st

from pyterrier_mathamr._common.feedback import gathered
from pyterrier_mathamr.formula import (
    FormulaError,
    definitions,
    opt_from_latex,
    opt_from_mathml,
    report_unknown_commands,
    slt_from_latex,
    trees_from_latex,
)
from pyterrier_mathamr.formula.tex import converter

BOTH = [
    (r"\qvar{x}^2", "[?x,a[N!2]]", "[O!SUP,0[?x],1[N!2]]"),  # a query variable
    (r"x^\qvar{n}_2", "[V!x,a[?n],b[N!2]]", "[O!SUB,0[O!SUP,0[V!𝑥],1[?n]],1[N!2]]"),
    (r"\frac{\qvar\alpha}{\qvar{a_1}}", "[O!divide,o[?alpha],u[?a1]]", "[O!divide,0[?alpha],1[?a1]]"),
    (r"R^3", "[V!R,a[N!3]]", "[O!SUP,0[V!𝑅],1[N!3]]"), (r"S_n", "[V!S,b[V!n]]", "[O!SUB,0[V!𝑆],1[V!𝑛]]"),
    (r"y'", "[V!y,a[′]]", "[O!SUP,0[V!𝑦],1[V!′]]"),
    (r"T_X^{0,1}", "[V!T,a[N!0[&comma;[N!1]]],b[V!X]]", "[O!SUP,0[O!SUB,0[V!𝑇],1[V!𝑋]],1[M!L-2,0[N!0],1[N!1]]]"),
    (r"\frac{2}{e}", "[O!divide,o[N!2],u[V!e]]", "[O!divide,0[N!2],1[V!𝑒]]"),
    (r"2/e", "[N!2[/[V!e]]]", "[O!divide,0[N!2],1[V!𝑒]]"), (r"\sqrt{5}", "[O!root,w[N!5]]", "[O!root,0[N!5],1[N!2]]"),
    (r"b=\sqrt[4]{2}", "[V!b[=[O!root,c[N!4],w[N!2]]]]", "[U!eq,0[V!𝑏],1[O!root,0[N!2],1[N!4]]]"),
    (r"-4i", "[-[N!4[V!i]]]", "[O!minus,0[U!times,0[N!4],1[V!𝑖]]]"),
    (r"\sin(18)", "[V!sin[M!()1x1,w[N!18]]]", "[F!sin,0[N!18]]"),
    (r"\sin^{-1}(x)", "[V!sin[M!()1x1,w[V!x]],a[-[N!1]]]", "[+!F!sin,0[O!SUP,0[F!sin],1[O!minus,0[N!1]]],1[V!𝑥]]"),
    (r"f(x)", "[V!f[M!()1x1,w[V!x]]]", "[U!times,0[V!𝑓],1[V!𝑥]]"),
    (r"f(t,x)", "[V!f[M!()1x2,w[V!t[&comma;],e[V!x]]]]", "[U!times,0[V!𝑓],1[O!interval(O-O),0[V!𝑡],1[V!𝑥]]]"),
    (
        r"\sum_{n=0}^N nx^n",
        "[∑[V!n[V!x,a[V!n]]],o[V!N],u[V!n[=[N!0]]]]",
        "[+!O!SUB,0[O!SUP,0[O!SUB,0[O!sum],1[U!eq,0[V!𝑛],1[N!0]]],1[V!𝑁]],1[U!times,0[V!𝑛],1[O!SUP,0[V!𝑥],1[V!𝑛]]]]",
    ),
    (
        r"\int_0^\infty f(x) dx",
        "[∫[V!f[M!()1x1[𝑑[V!x]],w[V!x]]],o[V!∞],u[N!0]]",
        "[+!O!SUB,0[O!SUP,0[O!SUB,0[O!int],1[N!0]],1[C!infinity]],"
        "1[U!times,0[V!𝑓],1[V!𝑥],2[O!differential-d,0[V!𝑥]]]]",
    ),
    (r"\lim_{N \to \infty}", "[lim,u[V!N[→[V!∞]]]]", "[O!SUB,0[O!limit],1[F!→,0[V!𝑁],1[C!infinity]]]"),
    (r"|a|<1", "[M!||1x1[<[N!1]],w[V!a]]", "[O!lt,0[F!abs,0[V!𝑎]],1[N!1]]"),
    (r"||f||", "[||[V!f[||]]]", "[O!norm,0[V!𝑓]]"),
    (r"[2,\infty)", "[M!&lsqb;)1x2,w[N!2[&comma;],e[V!∞]]]", "[O!interval(C-O),0[N!2],1[C!infinity]]"),
    (r"[n]", "[M!&lsqb;&rsqb;1x1,w[V!n]]", "[M!D-lsqb;&rsqb;,0[V!𝑛]]"),
    (r"\{a\}", "[M!{}1x1,w[V!a]]", "[M!S-1,0[V!𝑎]]"),
    (r"a=2, b=2", "[V!a[=[N!2[&comma;[V!b[=[N!2]]]]]]]", "[O!form-seq,0[U!eq,0[V!𝑎],1[N!2]],1[U!eq,0[V!𝑏],1[N!2]]]"),
    (r"{2n \choose n}", "[M!()1x1,w[O!divide,o[N!2[V!n]],u[V!n]]]", "[O!binomial,0[U!times,0[N!2],1[V!𝑛]],1[V!𝑛]]"),
    (r"n! + 2", "[V!n[![+[N!2]]]]", "[U!plus,0[O!factorial,0[V!𝑛]],1[N!2]]"),
    (r"\overline{x^2 -x}", "[M!1x1,o[¯],w[V!x[-[V!x]],a[N!2]]]", "[F!¯,0[O!minus,0[O!SUP,0[V!𝑥],1[N!2]],1[V!𝑥]]]"),
    (r"W\not =0", "[V!W[≠[N!0]]]", "[U!neq,0[V!𝑊],1[N!0]]"), (r"a)", "[V!a[)]]", "[E!,0[O!fragments],1[-!a],2[V!)]]"),
    (r"m=a=0", "[V!m[=[V!a[=[N!0]]]]]", "[U!and,0[U!eq,0[V!𝑚],1[V!𝑎]],1[U!eq,0[N!0]]]"),
    (r"a^t\equiv1\pmod n", "[V!a[≡[N!1[M!()1x1,w[mod[V!n]]]]],a[V!t]]",
     "[U!equivalent,0[O!SUP,0[V!𝑎],1[V!𝑡]],1[O!annotated,0[N!1],1[F!pmod,0[V!𝑛]]]]"),
    (r"x^a_b", "[V!x,a[V!a],b[V!b]]", "[O!SUB,0[O!SUP,0[V!𝑥],1[V!𝑎]],1[V!𝑏]]"),
    (r"a-b-c+d", "[V!a[-[V!b[-[V!c[+[V!d]]]]]]]", "[U!plus,0[O!minus,0[V!𝑎],1[V!𝑏],2[V!𝑐]],1[V!𝑑]]"),
]  # fmt: skip


@pytest.mark.parametrize(("latex", "slt", "opt"), BOTH, ids=[case[0] for case in BOTH])
def test_a_construct_has_the_trees_of_the_convention(latex, slt, opt):
    pair = trees_from_latex(latex)
    assert (slt_brackets(pair.slt), opt_brackets(pair.opt)) == (slt, opt)
    assert (slt_from_latex(latex), opt_from_latex(latex)) == pair


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (r"\frac12", r"\frac{1}{2}"), (r"{a \over b}", r"\frac{a}{b}"), (r"a &lt; b", r"a<b"),
        (r"0 &le; x", r"0\leq x"), (r"x≤y", r"x\leq y"), (r"x\in ℝ", r"x\in\mathbb{R}"),
        (r"\newcommand{\R}{\mathbb{R}}\R^n", r"\mathbb{R}^n"), (r"x=1\tag{2}", r"x=1"), (r"\mbox{if}", r"\text{if}"),
        (r"\text{if $x$}", r"\text{if }x"), (r"\bigl(x\bigr)", r"(x)"), (r"\Big{[}x\Big{]}", r"[x]"),
        (r"\begin{equation}x\end{equation}", r"x"), (r"f^{\prime\prime}", r"f''"), (r"{\large x}", r"x"),
        (r"$x$", r"x"),
        # commands of other dialects
        (r"A\smallsetminus B", r"A\setminus B"), (r"P(\hbox{two girls}|x)", r"P(\text{two girls}|x)"),
        (r"\root 3 \of{x}+\root{n}\of y", r"\sqrt[3]{x}+\sqrt[n] y"),
        (r"\sum_{\substack{i<n\\j}} a", r"\sum_{\begin{matrix}i<n\\j\end{matrix}} a"),
        (r"f=\cases{1,&x\cr 0,&y}", r"f=\begin{cases}1,&x\\ 0,&y\end{cases}"),
        (r"\eqalign{a&=b\cr &=c}", r"\begin{aligned}a&=b\\ &=c\end{aligned}"),
        (r"\bbox[5px,border:1px solid]{x}\smash[t]{y}\rlap{z}", "{x}{y}{z}"), (r"\delta*\delta", r"\delta *\delta"),
        ("a\\\nb\\", "a b"),
        (r"\begin{pmatrix}a\\[2pt]b\\*c\\[-.5 em] [d]\end{pmatrix}", r"\begin{pmatrix}a\\b\\c\\{[d]}\end{pmatrix}"),
        (r"\begin{smallmatrix}a\\b\end{smallmatrix}", r"\begin{matrix}a\\b\end{matrix}"),
        (r"\DeclareMathOperator{\ran}{ran}\ran A", r"\operatorname{ran}A"),
        (r"{\scr C}\mathds{1}\varinjlim", r"{\mathscr C}\mathbb{1}\injlim"),
    ],
)  # fmt: skip
def test_spellings_of_one_formula_have_one_tree(typed, meant):
    trees = trees_from_latex(typed, lines="all")
    assert trees == trees_from_latex(meant, lines="all")
    assert not trees.opt.partial


WORDS = (
    r"\root 3\of \bbox [2pt] \\ \ * { } {x} {smallmatrix} \raise 2pt \smash [t] \cr \hbox \alpha \delta x \vspace "
    r"\intertext \DeclareMathOperator \rk \substack \class \qedhere \eqalign"
)
PIECES = st.sampled_from([*WORDS.split(), "\n", "\t", " "])


@given(st.lists(PIECES, max_size=8).map("".join))
def test_a_formula_that_is_passed_over_has_nothing_to_rewrite(latex):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(converter, "_has_foreign", lambda _: True)
        whole = converter.known_commands(latex)
    assert converter.known_commands(latex) == whole


@pytest.mark.parametrize("latex", [r"\left< v, w\right>", r"\left<v,w\right\rangle", r"\bigl<v,w\bigr>", "⟨v,w⟩"])
def test_angles_are_an_operator_of_their_own_in_posts_and_a_list_as_in_the_reference(latex):
    assert opt_from_latex(latex, lines="all").nodes == ("M!D-⟩", "V!𝑣", "V!𝑤")
    assert opt_from_latex(latex).nodes == opt_from_latex(r"\langle v,w\rangle").nodes == ("M!L-2", "V!𝑣", "V!𝑤")
    assert opt_from_latex("v,w", lines="all").nodes == ("M!L-2", "V!𝑣", "V!𝑤")


@pytest.mark.parametrize(
    ("broken", "repaired"), [(r"{x", "x"), (r"x}", "x"), (r"x^", "x"), (r"x_{y^{2", "x_{y^{2}}"), (r"a & b", "a b")]
)
def test_broken_latex_is_repaired_and_the_tree_is_partial(broken, repaired):
    tree, whole = slt_from_latex(broken), slt_from_latex(repaired)
    assert tree.partial
    assert (tree.nodes, tree.edges) == (whole.nodes, whole.edges)


def test_an_unknown_command_is_marked_and_named_with_post_and_formula_and_the_rest_is_read():
    assert slt_from_latex(r"x+\unheardof").nodes == ("V!x", "+", "E!")
    assert opt_from_latex(r"x+\unheardof").nodes == ("U!plus", "V!𝑥", r"T!\unheardof")
    assert slt_from_latex(r"x+\unheardof").partial
    with gathered() as problems:
        for latex in (r"\foo x+\foo{y}", r"\text{\foo}", r"\alpha\setminus\beta", r"\frac{a"):
            report_unknown_commands("d", latex, trees_from_latex(latex))
    assert [tuple(problem) for problem in problems] == [("d", r"the command \foo is unknown", r"\foo x+\foo{y}")]


@pytest.mark.parametrize(
    ("defining", "typed", "meant"),
    [
        ([r"\newcommand{\norm}[1]{\|#1\|}", "x", r"\def\R{\mathbb{R}}"], r"\norm{x}\in\R", r"\|x\|\in\mathbb{R}"),
        ([r"\DeclareMathOperator{\rk}{rk} x", r"\newcommand{\Q}[1]{#1^2}"], r"\rk A+\Q z", r"\operatorname{rk}A+z^2"),
        ([r"\newcommand{\R}{\mathbb{R}}", r"\def\Rn{\R^n}", r"\def\R{\mathbb{Q}}"], r"x\in\Rn", r"x\in\mathbb{Q}^n"),
        ([r"\newcommand{\qvar}[1]{\mathbf{#1}}"], r"\qvar{x}", r"\mathbf{x}"),
    ],
)
def test_commands_that_a_post_defines_are_known_in_its_formulas_and_the_last_definition_holds(defining, typed, meant):
    assert trees_from_latex(typed, macros=definitions(defining)) == trees_from_latex(meant)


def test_a_post_may_define_nothing_or_a_command_by_itself():
    assert definitions(["x+y"]) == ""
    loop = opt_from_latex(r"y+\loop", macros=r"\def\loop{\loop}")
    assert loop.unknown_commands() == (r"\loop",)


def test_an_error_shows_the_place_with_a_caret_and_survives_pickling():
    with pytest.raises(FormulaError) as caught:
        slt_from_latex(r"a+\frac")
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.position == 7
    assert str(error).splitlines()[1:] == [r"  a+\frac", " " * 9 + "^"]
    assert trees_from_latex(r"a+\frac") == (None, None)
    for empty in ("", "   ", "\n"):
        with pytest.raises(FormulaError, match="empty"):
            slt_from_latex(empty)


def test_the_middle_of_a_chain_is_shared_on_request():
    asked = "[U!and,0[O!lt,0[V!𝑎],1[V!𝑏]],1[O!leq,0[V!𝑏],1[V!𝑐]]]"
    assert opt_brackets(opt_from_latex(r"a<b\leq c", chains="shared")) == asked
    assert opt_brackets(opt_from_latex(r"a<b\leq c")) == "[U!and,0[O!lt,0[V!𝑎],1[V!𝑏]],1[O!leq,0[V!𝑐]]]"
    missing = (
        "<math><apply><and/><apply><lt/><ci>a</ci><ci>b</ci></apply><apply><lt/>{}<ci>c</ci></apply></apply></math>"
    )
    whole = opt_from_mathml(missing.format('<share href="#x"/>'))
    assert opt_brackets(whole) == "[U!and,0[O!lt,0[V!a],1[V!b]],1[O!lt,0[V!b],1[V!c]]]"
    assert opt_from_mathml(missing.format(""), chains="shared") == whole
    assert len(opt_from_mathml(missing.format("")).nodes) == len(whole.nodes) - 1


@pytest.mark.parametrize(
    ("begin", "end"),
    [("x^{", "}"), (r"\frac{1}{", "}"), (r"\sqrt{", "}"), ("(", ")"), (r"\left(", r"\right)"), ("|", "|")],
)
def test_3000_levels_do_not_overflow(begin, end):
    pair = trees_from_latex(begin * 3_000 + "x" + end * 3_000)
    assert pair.slt is not None
    assert pair.slt.nodes.count("V!x") + pair.slt.nodes.count("N!1") >= 1


@pytest.mark.parametrize(
    "unit", [r"\frac{1}", r"\sqrt[3]", "a,", "(a)", "x'_0", "a|b", r"\text{$", "^{", r"\begin{array}{"]
)
def test_long_hostile_input_ends(unit):
    pair = trees_from_latex(unit * (20_000 // len(unit)))
    assert pair.slt is None or pair.slt.nodes


def test_a_query_variable_is_that_of_mathml_and_no_unknown_command():
    text = (
        '<apply xmlns="http://www.w3.org/1998/Math/MathML" xmlns:mws="http://search.mathweb.org/ns"><plus/>'
        '<apply><csymbol cd="ambiguous">superscript</csymbol><mws:qvar name="x"/><cn>2</cn></apply>'
        "<mws:qvar>y</mws:qvar></apply>"
    )
    from_latex = opt_from_latex(r"\qvar{x}^2+\qvar y")
    assert from_latex == opt_from_mathml(text)
    assert not from_latex.partial
    for other in (r"\qvarx", r"\qvar", r"\qvar{x", "\\text{\ue005x}", r"\qvar{\qvar{\qvar{x}}}", r"\qvar\ "):
        trees = trees_from_latex(other)
        assert trees.slt is None or trees.slt.nodes
