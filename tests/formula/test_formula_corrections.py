"""The named corrections of the reference's form; every tree is worked by hand."""

import pytest
from formula_helpers import opt_brackets, slt_brackets

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.formula import opt_from_latex, opt_from_mathml, slt_from_latex, slt_from_mathml, trees_from_latex

APPLIED = [
    (r"f(x)", "[F!𝑓,0[V!𝑥]]"), (r"\Psi\left(t,x\right)", "[F!Ψ,0[V!𝑡],1[V!𝑥]]"),
    (r"f(x,y,z)", "[F!𝑓,0[V!𝑥],1[V!𝑦],2[V!𝑧]]"), (r"2f(x)g(y)", "[U!times,0[N!2],1[F!𝑓,0[V!𝑥]],2[F!𝑔,0[V!𝑦]]]"),
    (r"f(x)/g(x)", "[O!divide,0[F!𝑓,0[V!𝑥]],1[F!𝑔,0[V!𝑥]]]"), (r"f(g(x))", "[F!𝑓,0[F!𝑔,0[V!𝑥]]]"),
    (r"f'(x)", "[+!F!𝑓,0[O!SUP,0[F!𝑓],1[V!′]],1[V!𝑥]]"), (r"f(x)^2", "[O!SUP,0[F!𝑓,0[V!𝑥]],1[N!2]]"),
    (r"\sin f(x)", "[F!sin,0[F!𝑓,0[V!𝑥]]]"), (r"\phi(n)!", "[O!factorial,0[F!italic-ϕ,0[V!𝑛]]]"),
    (r"\int f(x)dx", "[O!int,0[U!times,0[F!𝑓,0[V!𝑥]],1[O!differential-d,0[V!𝑥]]],1[W!],2[W!]]"),
]  # fmt: skip


@pytest.mark.parametrize(("latex", "expected"), APPLIED, ids=[case[0] for case in APPLIED])
def test_a_function_letter_before_parentheses_is_applied_on_request(latex, expected):
    tree = opt_from_latex(latex, applications="function")
    assert opt_brackets(tree) == expected
    assert opt_from_latex(latex) != tree
    assert trees_from_latex(latex, applications="function") == (slt_from_latex(latex), tree)


@pytest.mark.parametrize("latex", ["a(x)", "fx", "f[x]", r"f\times(x)", "h(2x+h)", "(f+g)(x)", "log(x)", "f(x"])
def test_only_letters_before_parentheses_become_functions(latex):
    assert opt_from_latex(latex, applications="function") == opt_from_latex(latex)


F, X, ONE = "<ci>𝑓</ci>", "<ci>𝑥</ci>", "<cn>1</cn>"


def product(*factors):
    return f"<apply><times/>{''.join(factors)}</apply>"


SUB_1 = '<apply><csymbol cd="ambiguous">subscript</csymbol>{}<cn>1</cn></apply>'.format
D_X = f'<apply><csymbol cd="latexml">differential-d</csymbol>{X}</apply>'
FROM_CONTENT = [
    (product(F, X), "[F!𝑓,0[V!𝑥]]"), (product(F, ONE), "[F!𝑓,0[N!1]]"),
    (product(F, SUB_1(X)), "[F!𝑓,0[O!SUB,0[V!𝑥],1[N!1]]]"),
    (product(SUB_1(F), X), "[+!F!𝑓,0[O!SUB,0[F!𝑓],1[N!1]],1[V!𝑥]]"),
    (product(F, X, D_X), "[U!times,0[F!𝑓,0[V!𝑥]],1[O!differential-d,0[V!𝑥]]]"),
    (product(F, f"<apply><plus/>{X}{ONE}</apply>"), "[F!𝑓,0[U!plus,0[V!𝑥],1[N!1]]]"),
    (product(F, f"<apply><minus/>{X}</apply>"), "[F!𝑓,0[O!minus,0[V!𝑥]]]"),
    (product(ONE, F, f'<interval closure="open">{X}{ONE}</interval>'), "[U!times,0[N!1],1[F!𝑓,0[V!𝑥],1[N!1]]]"),
    (product(F, f"<vector>{X}{X}{ONE}</vector>"), "[F!𝑓,0[V!𝑥],1[V!𝑥],2[N!1]]"),
    (product(F, product("<ci>𝑐</ci>", X)), "[F!𝑓,0[U!times,0[V!𝑐],1[V!𝑥]]]"),
    (product(F, product("<ci>𝑔</ci>", X)), "[F!𝑓,0[F!𝑔,0[V!𝑥]]]"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "expected"), FROM_CONTENT, ids=[case[1] for case in FROM_CONTENT])
def test_an_application_is_recognized_in_content_mathml_if_its_parentheses_can_be(content, expected):
    source = f"<math>{content}</math>"
    assert opt_brackets(opt_from_mathml(source, applications="function")) == expected
    assert opt_from_mathml(source).nodes.count("U!times") == content.count("<times/>")


@pytest.mark.parametrize(
    "content",
    [
        product(ONE, F, X),  # a f(x), or a f x
        product(F, "<ci>𝑔</ci>"),  # fg
        product(X, F),
        product("<ci>𝑎</ci>", X),
        product(F, f'<interval closure="closed">{X}{ONE}</interval>'),
        product(F, f'<apply><csymbol cd="ambiguous">superscript</csymbol>{X}{ONE}</apply>'),  # f(x)^2, or f(x^2)
        product("<ci>ℎ</ci>", f"<apply><plus/>{X}<ci>ℎ</ci></apply>"),
        f"<apply><plus/>{F}{X}</apply>",
        product(F, '<csymbol cd="ambiguous">subscript</csymbol>'),  # a subscript of nothing
    ],
)
def test_other_products_of_content_mathml_stay(content):
    source = f"<math>{content}</math>"
    assert opt_from_mathml(source, applications="function") == opt_from_mathml(source)


def test_applications_of_3000_levels_are_read():
    latex = "f(" * 3_000 + "x" + ")" * 3_000
    assert opt_from_latex(latex, applications="function").nodes == ("F!𝑓",) * 3_000 + ("V!𝑥",)
    content = f"<math>{f'<apply><times/>{F}' * 3_000}{X}{'</apply>' * 3_000}</math>"
    assert opt_from_mathml(content, applications="function").nodes == ("F!𝑓",) * 3_000 + ("V!𝑥",)


EQ_A_1, EQ_B_2 = "[U!eq,0[V!𝑎],1[N!1]]", "[U!eq,0[V!𝑏],1[N!2]]"
LINES = [
    (r"\begin{align} n&=5k, \\ &=3. \end{align}",
     "[M!2x2,w[V!n,e[=[N!5[V!k[&comma;]]],e[W!,e[=[N!3[.]]]]]]]",
     "[U!and,0[U!eq,0[V!𝑛],1[U!times,0[N!5],1[V!𝑘]]],1[U!eq,0[N!3]]]"),
    (r"\begin{gather*} a=1\\b=2 \end{gather*}",
     "[M!2x1,w[V!a[=[N!1]],e[V!b[=[N!2]]]]]",
     f"[O!form-seq,0{EQ_A_1},1{EQ_B_2}]"),
    (r"\begin{split} a&=1\\&+2 \end{split}",
     "[M!2x2,w[V!a,e[=[N!1],e[W!,e[+[N!2]]]]]]",
     "[U!eq,0[V!𝑎],1[U!plus,0[N!1],1[N!2]]]"),
    (r"\begin{aligned}[t] a&=1 & b&=2 \end{aligned}",
     "[M!1x4,w[V!a,e[=[N!1],e[V!b,e[=[N!2]]]]]]",
     f"[O!form-seq,0{EQ_A_1},1{EQ_B_2}]"),
    (r"\begin{eqnarray} a&=&1\\b&=&2 \end{eqnarray}",
     "[M!2x3,w[V!a,e[=,e[N!1,e[V!b,e[=,e[N!2]]]]]]]",
     f"[O!form-seq,0{EQ_A_1},1{EQ_B_2}]"),
    (r"\begin{alignat}{2} a&=1\\b&=2 \end{alignat}",
     "[M!2x2,w[V!a,e[=[N!1],e[V!b,e[=[N!2]]]]]]",
     f"[O!form-seq,0{EQ_A_1},1{EQ_B_2}]"),
    (r"\left\{\begin{aligned} a&=1\\b&=2 \end{aligned}\right.",
     "[{[M!2x2,w[V!a,e[=[N!1],e[V!b,e[=[N!2]]]]]]]",
     f"[O!cases,0{EQ_A_1},1[W!],2{EQ_B_2},3[W!]]"),
    (r"\begin{multline} a=b+\\c \end{multline}",
     "[M!2x1,w[V!a[=[V!b[+]]],e[V!c]]]",
     "[U!eq,0[V!𝑎],1[U!plus,0[V!𝑏],1[V!𝑐]]]"),
    (r"\begin{multline*} a\\+\begin{pmatrix}1\\2\end{pmatrix} \end{multline*}",
     "[M!2x1,w[V!a,e[+[M!()2x1,w[N!1,e[N!2]]]]]]",
     "[U!plus,0[V!𝑎],1[O!matrix,0[M!M-2x1,0[M!R!,0[N!1]],1[M!R!,0[N!2]]]]]"),
    (r"\begin{align} a&=1\tag{3}\label{x}\\[2pt] \intertext{so} b&=2 \end{align}",
     "[M!3x2,w[V!a,e[=[N!1],e[T!so,e[V!b,e[=[N!2]]]]]]]",
     f"[O!form-seq,0{EQ_A_1},1{EQ_B_2}]"),
    (r"\begin{align} a&=1 && \text{given} \end{align}", "[M!1x4,w[V!a,e[=[N!1],e[W!,e[T!given]]]]]", EQ_A_1),
]  # fmt: skip


@pytest.mark.parametrize(("latex", "slt", "opt"), LINES, ids=[case[0] for case in LINES])
def test_all_lines_of_a_derivation_are_read_on_request(latex, slt, opt):
    pair = trees_from_latex(latex, lines="all")
    assert (slt_brackets(pair.slt), opt_brackets(pair.opt)) == (slt, opt)
    assert (slt_from_latex(latex, lines="all"), opt_from_latex(latex, lines="all")) == pair
    assert not pair.slt.partial


def test_only_the_first_cell_of_a_derivation_is_read_by_default_and_all_of_another_table_either_way():
    for latex in (r"\begin{align}a&=1\\&=2\end{align}", r"\begin{split}a&=1\end{split}"):
        assert trees_from_latex(latex) == (slt_from_latex("a"), opt_from_latex("a"))
    for latex in (r"\begin{pmatrix}a&b\\c&d\end{pmatrix}", r"y=\begin{cases}1&x>0\\0\end{cases}", "x+1"):
        assert trees_from_latex(latex, lines="all") == trees_from_latex(latex)


def test_corrections_may_be_asked_for_together():
    latex = r"\begin{align} f(x)&=1\\&=2 \end{align}"
    tree = trees_from_latex(latex, chains="shared", applications="function", lines="all").opt
    assert opt_brackets(tree) == "[U!and,0[U!eq,0[F!𝑓,0[V!𝑥]],1[N!1]],1[U!eq,0[N!1],1[N!2]]]"
    assert tree == opt_from_latex(latex, chains="shared", applications="function", lines="all")


def test_the_layout_tree_of_a_table_in_mathml_has_all_its_cells():
    cells = "<mtr><mtd><mi>a</mi></mtd><mtd><mi>b</mi></mtd></mtr>" * 2
    tree = slt_from_mathml(f'<math><mtable displaystyle="true">{cells}</mtable></math>')
    assert slt_brackets(tree) == "[M!2x2,w[V!a,e[V!b,e[V!a,e[V!b]]]]]"


@pytest.mark.parametrize("option", ["chains", "applications", "lines"])
def test_a_value_that_an_option_does_not_have_is_refused(option):
    with pytest.raises(ConfigError) as caught:
        trees_from_latex("x", **{option: "some"})
    assert caught.value.option == option
    assert trees_from_latex("x", **{option: "reference"}) == trees_from_latex("x")


@pytest.mark.parametrize(
    "part", [r"\begin{align}a&=", r"\\&", r"\end{align}", "f(", r"g'(x)/", r"\left\{\begin{split}", "h^{2}("]
)
def test_hostile_latex_has_trees_with_every_correction_or_none(part):
    for latex in (part, part * 50, part * 50 + "x", "x" + part + r"\\" + part[::-1]):
        pair = trees_from_latex(latex, chains="shared", applications="function", lines="all")
        assert (pair.slt is None) == (pair.opt is None)
        assert pair.slt is None or pair.opt.nodes
