"""Tokens as in Universal Dependencies, and their features for the syntax network.

    "FORMULA_0-module doesn't"  ->  FORMULA_0  -  module  does  n't

A tenth of the tokens of Math Stack Exchange are not in the treebank, and the endings alone mislead the network, for
verbs above all ("FORMULA_0 converges" as a plural noun). For these words the network reads a stand-in: a word of the
treebank with the same syntax. The graph keeps the word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_TOKEN = re.compile(
    r"FORMULA_\d+|if\s+and\s+only\s+if\b|https?://\S+|www\.\S+"
    r"|(?:[A-Za-z]\.){2,}|\d+(?:[.,]\d+)*|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b"
    r"|\bcan(?=not\b)|[^\W\d_]+?(?=n['’]t\b)|[^\W\d_]+(?:\d+)?|\.{2,}|\S",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"FORMULA_\d+")
_DIGIT = re.compile(r"\d")


def tokenize(sentence: str) -> list[str]:
    """Split a sentence into tokens; a placeholder is one token, and "if and only if" is the token "iff"."""
    return ["iff" if token[:3].lower() == "if " else token for token in _TOKEN.findall(sentence)]


def is_placeholder(token: str) -> bool:
    """Return whether a token is the placeholder of a formula."""
    return _PLACEHOLDER.fullmatch(token) is not None


class Features(NamedTuple):
    """The features of a token; each has its own entries in the vocabulary, written ``feature=value``."""

    word: str
    suffix3: str
    suffix2: str
    prefix3: str
    shape: str


FEATURES = Features._fields


def features_of(token: str) -> Features:
    """Return the features of a token; those of all formulas are equal."""
    if is_placeholder(token):
        return Features("FORMULA", "", "", "", "formula")
    lower = _DIGIT.sub("0", token.lower().replace("’", "'"))
    if token.isalpha():
        shape = "lower" if token.islower() else "upper" if token.isupper() else "title" if token.istitle() else "mixed"
    else:
        shape = "number" if lower[0] == "0" else "other" if lower.isalnum() else "mark" if len(lower) == 1 else "marks"
    return Features(lower, lower[-3:], lower[-2:], lower[:3], shape)


def feature_ids(
    tokens: Sequence[str], vocabulary: Mapping[str, int], memory: dict[str, tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Look up the features of tokens."""
    found = []
    for token in tokens:
        ids = memory.get(token)
        if ids is None:
            features = features_of(token)
            if features.word in STAND_INS and f"word={features.word}" not in vocabulary:
                features = features_of(STAND_INS[features.word])._replace(shape=features.shape)
            values = zip(FEATURES, features, strict=True)
            ids = memory[token] = tuple(vocabulary.get(f"{name}={value}", 0) for name, value in values)
        found.append(ids)
    return found


_ADJECTIVES = (
    "continuous finite linear rational random algebraic irreducible dimensional symmetric injective arbitrary "
    "euclidean irrational differentiable elementary distinct quadratic geometric convergent divergent invertible "
    "maximal minimal binary abelian compact commutative cyclic integrable disjoint analytic isomorphic "
    "consecutive rigorous projective topological transitive discrete surjective bijective conditional uncountable "
    "countable convex dense reflexive exponential trigonometric holomorphic hermitian orthogonal diagonal "
    "infinite infinitesimal differential nonzero nonnegative measurable definite indefinite improper affine "
    "discontinuous coprime prime composite divisible asymptotic harmonic additive multiplicative numerical "
    "singular triangular undefined precise explicit propositional combinatorial inductive decimal logarithmic "
    "polynomial positive negative partial even odd homogeneous normal"
)
_NOUNS = (
    "theorem integral sequence equation matrix integer formula vector inequality induction algebra axiom lemma "
    "interval inverse subset algorithm calculus topology contradiction arithmetic convergence variable notation "
    "proof continuity multiplication integration axis geometry graph equivalence coefficient triangle "
    "substitution digit cardinality norm determinant cohomology dimension assumption bijection denominator gcd "
    "fraction approximation summation quotient ideal radius divisor isomorphism hypothesis intuition ratio "
    "coordinate module intersection exponent ellipse transformation manifold proposition mathematician rectangle "
    "homomorphism subspace residue contour segment symmetry implication subgroup factorization logarithm "
    "numerator eigenvalue morphism identity closure counterexample corollary integrand derivative limit sum "
    "series root polynomial group ring field space kernel basis summand permutation sine cosine tangent angle "
    "polygon circle diagram functor category tensor manifold sheaf scheme"
)
_PLURALS = (
    "integers equations polynomials axioms primes matrices variables roots proofs subsets sequences vectors "
    "digits integrals sums theorems rings ideals formulas coefficients divisors coordinates fractions squares "
    "vertices intervals zeros reals rationals ordinals eigenvalues symbols exponents entries expressions modules "
    "inequalities triangles constants identities groups fields spaces functions series permutations summands "
    "angles circles polyhedra tetrahedra polytopes eigenvectors extrema suprema infima"
)
_TRANSITIVE = (
    "compute:computes:computed:computing calculate:calculates:calculated:calculating "
    "multiply:multiplies:multiplied:multiplying divide:divides:divided:dividing "
    "simplify:simplifies:simplified:simplifying derive:derives:derived:deriving deduce:deduces:deduced:deducing "
    "integrate:integrates:integrated:integrating differentiate:differentiates:differentiated:differentiating "
    "substitute:substitutes:substituted:substituting rewrite:rewrites:rewritten:rewriting "
    "construct:constructs:constructed:constructing denote:denotes:denoted:denoting "
    "satisfy:satisfies:satisfied:satisfying map:maps:mapped:mapping evaluate:evaluates:evaluated:evaluating "
    "factor:factors:factored:factoring solve:solves:solved:solving define:defines:defined:defining "
    "yield:yields:yielded:yielding equal:equals:equaled:equaling generalize:generalizes:generalized:generalizing "
    "square:squares:squared:squaring bound:bounds:bounded:bounding minimize:minimizes:minimized:minimizing "
    "maximize:maximizes:maximized:maximizing invert:inverts:inverted:inverting "
    "enumerate:enumerates:enumerated:enumerating apply:applies:applied:applying "
    "subtract:subtracts:subtracted:subtracting expand:expands:expanded:expanding "
    "parametrize:parametrizes:parametrized:parametrizing"
)
_CLAUSAL = "prove:proves:proved:proving imply:implies:implied:implying"
_INTRANSITIVE = (
    "converge:converges:converged:converging diverge:diverges:diverged:diverging "
    "vanish:vanishes:vanished:vanishing correspond:corresponds:corresponded:corresponding "
    "commute:commutes:commuted:commuting intersect:intersects:intersected:intersecting "
    "coincide:coincides:coincided:coinciding occur:occurs:occurred:occurring"
)
_VERBS = (
    (_TRANSITIVE, "use uses used using"),
    (_CLAUSAL, "show shows shown showing"),
    (_INTRANSITIVE, "go goes went going"),
)

STAND_INS: dict[str, str] = {
    **dict.fromkeys(_PLURALS.split(), "questions"),
    **dict.fromkeys(_NOUNS.split(), "question"),
    **dict.fromkeys(_ADJECTIVES.split(), "large"),
    **{
        form: stand_in
        for verbs, stand_ins in _VERBS
        for verb in verbs.split()
        for form, stand_in in zip(verb.split(":"), stand_ins.split(), strict=True)
    },
    "iff": "if",
    "modulo": "under",
}
"""The stand-in of each word that the network's vocabulary may lack."""
