"""Words of mathematics that the treebank lacks, each with a word it has that behaves alike in a sentence.

The network sees the stand-in; the graph keeps the word. A tenth of the tokens of Math Stack Exchange are not in the
treebank, and of these mostly the verbs are misread by their endings alone ("FORMULA_0 converges" as a plural noun).
"""

from __future__ import annotations

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
"""The stand-in of each word; asked only for words that the network's vocabulary lacks."""
