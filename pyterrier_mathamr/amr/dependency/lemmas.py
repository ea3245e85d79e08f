"""Lemmas by rule, with the plurals of mathematics (``axes``, ``matrices``) and irregular forms."""

from __future__ import annotations

import re
from collections.abc import Mapping

_IRREGULAR_NOUNS = (
    "axes:axis bases:basis eigenbases:eigenbasis hypotheses:hypothesis analyses:analysis theses:thesis "
    "crises:crisis parentheses:parenthesis syntheses:synthesis vertices:vertex indices:index matrices:matrix "
    "submatrices:submatrix appendices:appendix vortices:vortex simplices:simplex codices:codex radii:radius "
    "loci:locus moduli:modulus foci:focus nuclei:nucleus calculi:calculus tori:torus annuli:annulus abaci:abacus "
    "formulae:formula formulas:formula lemmata:lemma criteria:criterion phenomena:phenomenon polyhedra:polyhedron "
    "tetrahedra:tetrahedron automata:automaton spectra:spectrum maxima:maximum minima:minimum extrema:extremum "
    "suprema:supremum infima:infimum optima:optimum quanta:quantum continua:continuum data:data media:medium "
    "series:series species:species halves:half leaves:leaf lives:life wives:wife knives:knife shelves:shelf "
    "selves:self sheaves:sheaf people:person men:man women:woman children:child feet:foot teeth:tooth mice:mouse "
    "dice:die geese:goose corollaries:corollary maths:mathematics math:mathematics mathematics:mathematics "
    "physics:physics statistics:statistics analytics:analytics dynamics:dynamics news:news lens:lens lenses:lens "
    "gauss:gauss thanks:thanks"
)
_IRREGULAR_VERBS = (
    "is:be are:be was:be were:be been:be being:be am:be 's:be 're:be 'm:be has:have had:have having:have 've:have "
    "does:do did:do done:do doing:do goes:go went:go gone:go made:make making:make got:get gotten:get getting:get "
    "took:take taken:take taking:take gave:give given:give giving:give came:come coming:come became:become "
    "becoming:become found:find knew:know known:know thought:think said:say told:tell saw:see seen:see left:leave "
    "meant:mean shown:show proven:prove proved:prove proving:prove wrote:write written:write writing:write "
    "understood:understand began:begin begun:begin beginning:begin kept:keep held:hold led:lead lay:lie lain:lie "
    "lying:lie brought:bring bought:buy built:build chose:choose chosen:choose choosing:choose drew:draw "
    "drawn:draw fell:fall fallen:fall felt:feel forgot:forget forgotten:forget grew:grow grown:grow heard:hear "
    "let:let letting:let lost:lose losing:lose met:meet paid:pay put:put putting:put read:read ran:run "
    "running:run sent:send set:set setting:set spent:spend split:split splitting:split stood:stand taught:teach "
    "threw:throw thrown:throw won:win winning:win bound:bound bounded:bound cut:cut cutting:cut born:bear "
    "bore:bear died:die dying:die tied:tie spoke:speak spoken:speak broke:break broken:break arose:arise "
    "arisen:arise arising:arise dealt:deal learnt:learn wound:wind lent:lend bent:bend hid:hide hidden:hide "
    "rose:rise risen:rise using:use used:use denoted:denote denoting:denote evaluated:evaluate "
    "integrating:integrate differing:differ differed:differ occurring:occur occurred:occur mapping:map mapped:map "
    "plugging:plug plugged:plug cancelled:cancel cancelling:cancel labelled:label labelling:label "
    "travelled:travel modelled:model modelling:model ca:can wo:will sha:shall 'll:will 'd:would commuting:commute "
    "computing:compute deduced:deduce induced:induce obtained:obtain defining:define converging:converge "
    "diverging:diverge converged:converge diverged:diverge solving:solve solved:solve squaring:square "
    "squared:square dividing:divide divided:divide deriving:derive derived:derive assuming:assume assumed:assume "
    "supposing:suppose supposed:suppose substituting:substitute multiplying:multiply applying:apply "
    "implying:imply"
)
_NOUNS = dict(pair.split(":") for pair in _IRREGULAR_NOUNS.split())
_VERBS = dict(pair.split(":") for pair in _IRREGULAR_VERBS.split())
_E_LOST = re.compile(
    r"(?:[^aeiou]at|[aeou]at(?<!eat)|iz|[uio]s(?<!ous)|ys|[aeiou]v|lv|rv|[aeinor]c|[^aeiou][lr](?<!rl)(?<!ll)(?<!rr)|rg|dg|[au]g(?<!ag)"
    r"|[aeiou]ng(?<!ing)(?<!ong)|u|[^aeiou][aiu]r|[^aeiou]ut|ot(?<!oot)|[^aeiou]in(?<!ain)|[^aeiou]id|lud|od|[^aeiou]et"
    r"|[iou]m(?<!oom)|iq|scrib|ak|uk|ap(?<!eap)|ip|yp|op(?<!oop)|[^aeiou]il|ul)$"
)
_E_LOST_IN_COMPARING = re.compile(r"(?:[^aeioul]l|rg|ns|rs|[^aeiou][ai][dnrt]|[aou]s|[^aeiou]ic|av|iv|uc|ut|ur|af|ak)$")
_DOUBLED = re.compile(r"([bdgklmnprt])\1$")


def lemma(word: str, tag: str, known: Mapping[str, str]) -> str:
    """Return a word's lemma."""
    kind = "v" if tag[0] == "V" or tag == "MD" else "n" if tag[0] == "N" else "a" if tag[0] in "JR" else ""
    if not kind:
        return word
    own = (_VERBS if kind == "v" else _NOUNS if kind == "n" else {}).get(word)
    found = own or known.get(f"{kind}:{word}")
    return found or by_rule(word, tag)


def by_rule(word: str, tag: str) -> str:
    """Return the lemma by spelling alone."""
    if tag in ("NNS", "NNPS", "VBZ"):
        return _singular(word)
    if tag in ("VBD", "VBN") and word.endswith("ed") and len(word) > 4:
        return word[:-3] + "y" if word.endswith("ied") else _restored(word[:-2])
    if tag == "VBG" and word.endswith("ing") and len(word) > 4:
        return _restored(word[:-3])
    if tag in ("JJR", "RBR") and word.endswith("er") and len(word) > 4:
        return word[:-3] + "y" if word.endswith("ier") else _positive(word[:-2])
    if tag in ("JJS", "RBS") and word.endswith("est") and len(word) > 5:
        return word[:-4] + "y" if word.endswith("iest") else _positive(word[:-3])
    return word


def _positive(stem: str) -> str:
    """Return the adjective of a comparative's stem: big, simple and fine for bigg, simpl and fin."""
    if _DOUBLED.search(stem) and not stem.endswith("ll"):
        return stem[:-1]
    return stem + "e" if _E_LOST_IN_COMPARING.search(stem) else stem


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return word[:-2]
    return word[:-1]


def _restored(stem: str) -> str:
    """Undo a doubled consonant or restore a final e."""
    if _DOUBLED.search(stem) and len(stem) > 3 and not stem.endswith("ll"):
        return stem[:-1]
    return stem + "e" if _E_LOST.search(stem) else stem
