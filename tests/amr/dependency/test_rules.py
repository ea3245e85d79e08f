"""Each rule from dependencies to AMR on one sentence: rule -> sentence -> graph."""

import pytest

from pyterrier_mathamr.amr import DependencyAmrParser
from pyterrier_mathamr.amr.dependency.lexicon import by_rule

PARSER = DependencyAmrParser()

RULES = {
    "concepts are lemmas, plurals of mathematics too": (
        "The vertices of the polyhedra lie on the axes.",
        "(l / lie-01 :ARG1 (v / vertex :poss (p / polyhedron)) :location (a / axis))",
    ),
    "a verb is a frame, its subject and object are :ARG0 and :ARG1": (
        "We prove FORMULA_0.",
        "(p / prove-01 :ARG0 (w / we) :ARG1 (f0 / FORMULA_0))",
    ),
    "the indirect object is :ARG2": (
        "Give me an example.",
        "(g / give-01 :ARG2 (i / i) :ARG1 (e / example) :mode imperative :ARG0 (y / you))",
    ),
    "a subject that only undergoes something is :ARG1": (
        "Hence the sum converges.",
        "(c / converge-01 :ARG1-of (c2 / cause-01) :ARG1 (s / sum))",
    ),
    "passive": (
        "FORMULA_0 is denoted by FORMULA_1.",
        "(d / denote-01 :ARG1 (f0 / FORMULA_0) :ARG0 (f1 / FORMULA_1))",
    ),
    "imperative": (
        "Prove that FORMULA_0 is irrational.",
        "(p / prove-01 :ARG1 (i / irrational :domain (f0 / FORMULA_0)) :mode imperative :ARG0 (y / you))",
    ),
    "copula with a noun": ("FORMULA_0 is a group.", "(g / group :domain (f0 / FORMULA_0))"),
    "copula with an adjective that is a frame": (
        "FORMULA_0 is bounded.",
        "(b / bound-01 :ARG1 (f0 / FORMULA_0))",
    ),
    "copula in a question": (
        "Is FORMULA_0 a group?",
        "(g / group :domain (f0 / FORMULA_0) :polarity (a / amr-unknown))",
    ),
    "existential": ("There are three solutions.", "(e / exist-01 :ARG1 (s / solve-01 :quant 3))"),
    "a copula between formulas is an equation": (
        "FORMULA_0 is FORMULA_1.",
        "(e / equal-01 :ARG2 (f1 / FORMULA_1) :ARG1 (f0 / FORMULA_0))",
    ),
    "a sign between formulas is an equation": (
        "FORMULA_0 = FORMULA_1",
        "(e / equal-01 :ARG1 (f0 / FORMULA_0) :ARG2 (f1 / FORMULA_1))",
    ),
    "can": (
        "FORMULA_0 can diverge.",
        "(p / possible-01 :ARG1 (d / diverge-01 :ARG1 (f0 / FORMULA_0)))",
    ),
    "must": (
        "FORMULA_0 must be positive.",
        "(o / obligate-01 :ARG2 (p / positive :domain (f0 / FORMULA_0)))",
    ),
    "have to": (
        "We have to prove FORMULA_0.",
        "(o / obligate-01 :ARG1 (w / we) :ARG2 (p / prove-01 :ARG0 w :ARG1 (f0 / FORMULA_0)))",
    ),
    "should": (
        "You should use induction.",
        "(r / recommend-01 :ARG1 (u / use-01 :ARG0 (y / you) :ARG1 (i / induction)))",
    ),
    "negation": ("FORMULA_0 is not continuous.", "(c / continuous :polarity - :domain (f0 / FORMULA_0))"),
    "cannot is not possible": (
        "FORMULA_0 cannot vanish.",
        "(p / possible-01 :ARG1 (v / vanish-01 :ARG1 (f0 / FORMULA_0)) :polarity -)",
    ),
    "may not is possible that not": (
        "FORMULA_0 may not converge.",
        "(p / possible-01 :ARG1 (c / converge-01 :polarity - :ARG1 (f0 / FORMULA_0)))",
    ),
    "no": ("There is no solution.", "(e / exist-01 :ARG1 (s / solve-01 :polarity -))"),
    "yes or no": (
        "Does FORMULA_0 converge?",
        "(c / converge-01 :ARG1 (f0 / FORMULA_0) :polarity (a / amr-unknown))",
    ),
    "what": (
        "What is the limit of FORMULA_0?",
        "(l / limit :domain (a / amr-unknown) :poss (f0 / FORMULA_0))",
    ),
    "who": (
        "Who proved this theorem?",
        "(p / prove-01 :ARG0 (a / amr-unknown) :ARG1 (t / theorem :mod (t2 / this)))",
    ),
    "how": (
        "How can I solve FORMULA_0?",
        "(p / possible-01 :ARG1 (s / solve-01 :manner (a / amr-unknown) :ARG0 (i / i) :ARG1 (f0 / FORMULA_0)))",
    ),
    "why": (
        "Why does FORMULA_0 converge?",
        "(c / converge-01 :ARG1-of (c2 / cause-01 :ARG0 (a / amr-unknown)) :ARG1 (f0 / FORMULA_0))",
    ),
    "how many": (
        "How many elements does FORMULA_0 have?",
        "(h / have-03 :ARG1 (e / element :quant (a / amr-unknown)) :ARG0 (f0 / FORMULA_0))",
    ),
    "and": (
        "FORMULA_0 and FORMULA_1 are finite.",
        "(ff / finite :domain (a / and :op1 (f0 / FORMULA_0) :op2 (f1 / FORMULA_1)))",
    ),
    "or": (
        "FORMULA_0, FORMULA_1 or FORMULA_2 is prime.",
        "(p / prime :domain (o / or :op1 (f0 / FORMULA_0) :op2 (f1 / FORMULA_1) :op3 (f2 / FORMULA_2)))",
    ),
    "but": (
        "I tried but it failed.",
        "(c / contrast-01 :ARG1 (t / try-01 :ARG0 (i / i)) :ARG2 (ff / fail-01 :ARG1 (i2 / it)))",
    ),
    "because": (
        "FORMULA_0 vanishes because FORMULA_1 is odd.",
        "(v / vanish-01 :ARG1 (f0 / FORMULA_0) :ARG1-of (c / cause-01 :ARG0 (o / odd :domain (f1 / FORMULA_1))))",
    ),
    "since": (
        "Since FORMULA_0 is compact, FORMULA_1 is bounded.",
        "(b / bound-01 :ARG1-of (c / cause-01 :ARG0 (c2 / compact :domain (f0 / FORMULA_0))) :ARG1 (f1 / FORMULA_1))",
    ),
    "therefore": (
        "Therefore, FORMULA_0 is bounded.",
        "(b / bound-01 :ARG1-of (c / cause-01) :ARG1 (f0 / FORMULA_0))",
    ),
    "if": (
        "If FORMULA_0 is prime, then FORMULA_1 is odd.",
        "(o / odd :condition (p / prime :domain (f0 / FORMULA_0)) :domain (f1 / FORMULA_1))",
    ),
    "unless": (
        "FORMULA_0 converges unless FORMULA_1 is negative.",
        "(c / converge-01 :ARG1 (f0 / FORMULA_0) :condition (n / negative :domain (f1 / FORMULA_1) :polarity -))",
    ),
    "given": (
        "Given FORMULA_0, find FORMULA_1.",
        "(ff / find-01 :condition (f0 / FORMULA_0) :ARG1 (f1 / FORMULA_1) :mode imperative :ARG0 (y / you))",
    ),
    "where, after a comma, defines symbols": (
        "FORMULA_0 is odd, where FORMULA_1 is a constant.",
        "(o / odd :domain (f0 / FORMULA_0) :condition (c / constant :domain (f1 / FORMULA_1)))",
    ),
    "when": (
        "FORMULA_0 vanishes when FORMULA_1 is odd.",
        "(v / vanish-01 :ARG1 (f0 / FORMULA_0) :time (o / odd :domain (f1 / FORMULA_1)))",
    ),
    "when, behind a noun": (
        "It is the case when FORMULA_0 is odd.",
        "(c / case :domain (i / it) :time (o / odd :domain (f0 / FORMULA_0)))",
    ),
    "thus, with only a formula": ("Thus, FORMULA_0.", "(f0 / FORMULA_0 :ARG1-of (c / cause-01))"),
    "as something tends somewhere": (
        "Thus the limit of FORMULA_0 as FORMULA_1 goes to infinity is FORMULA_2.",
        "(e / equal-01 :ARG2 (f2 / FORMULA_2) :ARG1-of (c / cause-01) :ARG1 (l / limit :poss (f0 / FORMULA_0) "
        ":time (g / go-02 :ARG0 (f1 / FORMULA_1) :ARG2 (i / infinity))))",
    ),
    "purpose": (
        "In order to simplify the proof, we rewrite FORMULA_0.",
        "(r / rewrite-01 :purpose (s / simplify-01 :ARG1 (p / prove-01)) :ARG0 (w / we) :ARG1 (f0 / FORMULA_0))",
    ),
    "an infinitive shares a subject with its verb": (
        "We use FORMULA_0 to prove the theorem.",
        "(u / use-01 :ARG0 (w / we) :ARG1 (f0 / FORMULA_0) :ARG2 (p / prove-01 :ARG0 w :ARG1 (t / theorem)))",
    ),
    "manner": (
        "I proved it by induction.",
        "(p / prove-01 :ARG0 (i / i) :ARG1 (i2 / it) :manner (i3 / induction))",
    ),
    "location": ("FORMULA_0 lies in FORMULA_1.", "(l / lie-01 :ARG1 (f0 / FORMULA_0) :location (f1 / FORMULA_1))"),
    "quantity": ("It has two roots.", "(h / have-03 :ARG0 (i / it) :ARG1 (r / root :quant 2))"),
    "bound of a quantity": (
        "FORMULA_0 has at least two roots.",
        "(h / have-03 :ARG0 (f0 / FORMULA_0) :ARG1 (r / root :quant (a / at-least :op1 2)))",
    ),
    "degree": ("FORMULA_0 is very large.", "(l / large-01 :ARG1 (f0 / FORMULA_0) :degree (v / very))"),
    "comparison": (
        "FORMULA_0 is smaller than FORMULA_1.",
        "(h / have-degree-91 :ARG2 (s / small) :ARG3 (m / more) :ARG1 (f0 / FORMULA_0) :ARG4 (f1 / FORMULA_1))",
    ),
    "a relative clause is the noun's edge into it": (
        "The function that I defined is smooth.",
        "(s / smooth :domain (ff / function :ARG1-of (d / define-01 :ARG0 (i / i))))",
    ),
    "a repeated pronoun is one node": (
        "I think I know it.",
        "(t / think-01 :ARG0 (i / i) :ARG1 (k / know-01 :ARG0 i :ARG1 (i2 / it)))",
    ),
    "a symbol typed as text is one node": (
        "x is a multiple of x.",
        "(m / multiple :domain (x / x) :poss x)",
    ),
    "names": (
        "The theorem was proved by Henri Poincaré.",
        '(p / prove-01 :ARG1 (t / theorem) :ARG0 (p2 / person :name (n / name :op1 "Henri" :op2 "Poincaré")))',
    ),
    "persons named by what they do": (
        "The author proves it.",
        "(p / prove-01 :ARG0 (p2 / person :ARG0-of (a / author-01)) :ARG1 (i / it))",
    ),
    "ordinals": (
        "The first term is FORMULA_0.",
        "(e / equal-01 :ARG2 (f0 / FORMULA_0) :ARG1 (t / term :ord (o / ordinal-entity :value 1)))",
    ),
    "mean": (
        "What does FORMULA_0 mean?",
        "(m / mean-01 :ARG2 (a / amr-unknown) :ARG1 (f0 / FORMULA_0))",
    ),
    "define": (
        "Define FORMULA_0 as FORMULA_1.",
        "(d / define-01 :ARG1 (f0 / FORMULA_0) :prep-as (f1 / FORMULA_1) :mode imperative :ARG0 (y / you))",
    ),
    "denote": (
        "Let FORMULA_0 denote the number of edges.",
        "(l / let-01 :ARG1 (f0 / FORMULA_0) :ARG2 (d / denote-01 :ARG0 f0 :ARG1 (n / number :poss (e / edge))) "
        ":mode imperative :ARG0 (y / you))",
    ),
    "which": (
        "Which people were born in Vienna?",
        '(b / bear-02 :ARG1 (p / person :mod (a / amr-unknown)) :location (c / city :name (n / name :op1 "Vienna")))',
    ),
    "let": (
        "Let FORMULA_0 be a finite group.",
        "(l / let-01 :ARG1 (f0 / FORMULA_0) :ARG2 (g / group :mod (ff / finite) :domain f0) "
        ":mode imperative :ARG0 (y / you))",
    ),
    "such that": (
        "Let FORMULA_0 be a group such that FORMULA_1 is finite.",
        "(l / let-01 :ARG1 (f0 / FORMULA_0) :ARG2 (g / group :domain f0 "
        ":condition (ff / finite :domain (f1 / FORMULA_1))) :mode imperative :ARG0 (y / you))",
    ),
    "for all": (
        "For all FORMULA_0, FORMULA_1 is positive.",
        "(p / positive :prep-for (f0 / FORMULA_0 :mod (a / all)) :domain (f1 / FORMULA_1))",
    ),
    "there exists": (
        "For every FORMULA_0 there exists FORMULA_1 such that FORMULA_2 holds.",
        "(e / exist-01 :prep-for (f0 / FORMULA_0 :mod (e2 / every)) "
        ":ARG1 (f1 / FORMULA_1 :condition (h / hold-01 :ARG1 (f2 / FORMULA_2))))",
    ),
    "if and only if: each is the condition of the other": (
        "FORMULA_0 holds if and only if FORMULA_1 holds.",
        "(h / hold-01 :ARG1 (f0 / FORMULA_0) :condition (h2 / hold-01 :ARG1 (f1 / FORMULA_1) :condition h))",
    ),
    "like": ("I like the proof.", "(l / like-01 :ARG0 (i / i) :ARG1 (p / prove-01))"),
    "to like with would is to wish": ("I would like a proof.", "(l / like-02 :ARG0 (i / i) :ARG1 (p / prove-01))"),
    "a gerund with a condition": (
        "Proving that if FORMULA_0 is transitive then FORMULA_1 is symmetric.",
        "(p / prove-01 :ARG1 (s / symmetric :condition (t / transitive :domain (f0 / FORMULA_0)) "
        ":domain (f1 / FORMULA_1)))",
    ),
}


@pytest.mark.parametrize(("sentence", "penman"), RULES.values(), ids=RULES)
def test_a_rule_gives_its_graph(sentence: str, penman: str) -> None:
    assert PARSER.parse_sentences([sentence]) == [penman]


@pytest.mark.parametrize(
    ("word", "tag", "expected"),
    [("larger", "JJR", "large"), ("smallest", "JJS", "small"), ("biggest", "JJS", "big"), ("easier", "JJR", "easy"),
     ("simplest", "JJS", "simple"), ("finer", "JJR", "fine"), ("taller", "JJR", "tall"), ("closest", "JJS", "close"),
     ("denser", "JJR", "dense"), ("wider", "JJR", "wide"), ("older", "JJR", "old"), ("over", "JJR", "over")],
)  # fmt: skip
def test_compared_adjectives_have_their_plain_form(word: str, tag: str, expected: str) -> None:
    assert by_rule(word, tag) == expected
