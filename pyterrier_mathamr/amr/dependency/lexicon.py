"""The tables of words that the conversion of dependencies to AMR uses, and lemmas by rule.

The rules know the plurals of mathematics (``axes``, ``matrices``) and irregular forms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping


def _table(text: str) -> dict[str, str]:
    return dict(pair.split(":", 1) for pair in text.split())


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


SENSES = _table(
    "have:03 do:02 go:02 bear:02 develop:02 assume:02 consider:02 apply:02 differ:02 succeed:02 cross:02 admit:02 "
    "lead:03 turn:02 correct:02 easy:05 hard:02 clear:06 high:02 wrong:02 good:02 low:04 long:03 right:06 useful:05 "
    "distant:02 close:10 smart:06 real:04 independent:03 sure:02 simple:02"
)
"""PropBank's sense of a frame where it is not 01, in the meaning usual in posts (to own, to give birth, to suppose, to
think about, to be unlike, to result in); for adjectives AMR's."""

NOMINAL_FRAMES = _table(
    "proof:prove solution:solve definition:define assumption:assume explanation:explain answer:answer "
    "question:question difference:differ multiplication:multiply convergence:converge divergence:diverge "
    "derivation:derive integration:integrate differentiation:differentiate approximation:approximate "
    "intersection:intersect calculation:calculate computation:compute existence:exist application:apply "
    "substitution:substitute addition:add subtraction:subtract division:divide expansion:expand reduction:reduce "
    "evaluation:evaluate estimation:estimate construction:construct composition:compose transformation:transform "
    "classification:classify description:describe suggestion:suggest statement:state claim:claim attempt:attempt "
    "help:help reason:reason thought:think use:use understanding:understand meaning:mean interpretation:interpret "
    "simplification:simplify factorization:factorize manipulation:manipulate generalization:generalize "
    "conclusion:conclude contradiction:contradict implication:imply equality:equal permutation:permute "
    "rotation:rotate translation:translate reflection:reflect projection:project iteration:iterate "
    "representation:represent comparison:compare observation:observe notation:notate proving:prove "
    "exchange:exchange price:price discovery:discover death:die birth:bear marriage:marry choice:choose "
    "dependence:depend growth:grow decomposition:decompose completion:complete "
    "requirement:require relation:relate argument:argue thanks:thank"
)
"""Nouns that AMR writes as the verb's frame."""

ADJECTIVE_FRAMES = _set(
    "possible true correct equal easy hard clear wrong different similar same sure equivalent isomorphic "
    "independent useful right good able necessary sufficient interesting high large long aware familiar "
    "helpful related valid open close closed bounded"
)
"""Adjectives that are frames as predicates; their subject is :ARG1."""

ADJECTIVE_NAMES = _table(
    "different:differ similar:resemble able:possible necessary:need sufficient:suffice related:relate "
    "closed:close bounded:bound"
)
"""The frame of an adjective where it is not the adjective itself."""

UNACCUSATIVE = _set(
    "exist converge diverge happen occur appear vanish tend hold differ increase decrease grow fall rise follow "
    "fail arise remain seem belong consist depend die commute coincide equal mean imply flow cost weigh come "
    "result lie intersect terminate oscillate"
)
"""Verbs whose subject is :ARG1 if they have no object (see `SUBJECT_IS_THING` for verbs with one)."""

SUBJECT_IS_THING = _set(
    "equal mean differ belong consist exist converge diverge tend cost weigh contain resemble coincide obligate"
)
"""Verbs whose subject is :ARG1 and whose object is :ARG2."""

AGENTS = _table(
    "author:author writer:write editor:edit reader:read teacher:teach student:study owner:own user:use founder:found "
    "inventor:invent creator:create producer:produce director:direct manager:manage developer:develop designer:design "
    "painter:paint composer:compose player:play singer:sing researcher:research inhabitant:inhabit employee:employ "
    "speaker:speak winner:win successor:succeed"
)
"""Persons named by what they do, (p / person :ARG0-of (a / author-01)), as in AMR's guidelines."""

LIMIT_VERBS = _set("go tend approach converge increase decrease grow vary move run")
"""Verbs of a temporal clause with "as": as x tends to 0."""

CONCLUSIONS = _set("thus hence therefore consequently so accordingly")
"""Adverbs that mark the effect of a cause before it."""

SIGNS = {"=": "equal-01", "<": "less-than", ">": "more-than", "≤": "at-most", "≥": "at-least"}
"""Relation signs typed as text."""

COMMANDS = _set(
    "list find prove show let give determine compute calculate evaluate solve suppose assume note consider define "
    "observe simplify name count state explain describe"
)
"""First words of a command, even if they could be nouns."""

QUANTIFIERS = _set("all every each any some")

MODALS = _table(
    "can:possible could:possible may:possible might:possible must:obligate should:recommend ought:recommend ca:possible"
)

PREPOSITIONS = _table(
    "in::location on::location at::location inside::location within::location near::location between::location "
    "under::location over::location above::location below::location along::location around::location "
    "across::location outside::location behind::location beside::location throughout::location with::accompanier "
    "from::source to::destination into::destination onto::destination toward::direction towards::direction "
    "about::topic regarding::topic concerning::topic during::time before::time after::time since::time "
    "until::time till::time by::manner via::manner through::path using::instrument like::manner for::purpose "
    "because::cause despite::concession without::accompanier than::compared-to of::poss 's::poss except::except "
    "per::frequency given::condition"
)
"""Roles of obliques by preposition; ``:prep-X`` for any other."""

MARKS = _table(
    "if::condition when::time while::time whenever::time after::time before::time until::time once::time "
    "because::cause since::cause as::cause so::purpose although::concession though::concession unless::condition "
    "whether::mode where::condition such::condition given::condition provided::condition assuming::condition "
    "suppose::condition by::manner without::manner for::purpose to::purpose in::purpose iff::condition"
)
"""Roles of adverbial clauses by their first word."""

ADVERBS = _table(
    "here::location there::location everywhere::location now::time then::time always::time often::frequency "
    "sometimes::frequency never::time already::time still::mod again::mod also::mod too::mod only::mod even::mod "
    "just::mod very::degree so::degree quite::degree really::degree more::degree most::degree less::degree "
    "least::degree fairly::degree pretty::degree completely::degree almost::degree enough::degree however::mod "
    "therefore::mod thus::mod hence::mod today::time tomorrow::time yesterday::time soon::time later::time "
    "first::time finally::time next::time recently::time currently::time maybe::mod perhaps::mod rather::degree "
    "somewhat::degree exactly::mod"
)
"""Roles of adverbs; any other is :manner under a verb, :degree or :mod elsewhere."""

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
NUMBER_WORDS = {word: str(value) for value, word in enumerate(_ONES.split())}
NUMBER_WORDS |= _table("thirty:30 forty:40 fifty:50 hundred:100 thousand:1000 million:1000000")

_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
ORDINALS = {word: str(value) for value, word in enumerate(_ORDINALS.split(), 1)}

COUNTRIES = _set(
    "afghanistan albania algeria andorra angola argentina armenia australia austria azerbaijan bahamas bahrain "
    "bangladesh barbados belarus belgium belize benin bhutan bolivia botswana brazil britain brunei bulgaria burundi "
    "cambodia cameroon canada chad chile china colombia congo croatia cuba cyprus denmark djibouti ecuador egypt "
    "england eritrea estonia ethiopia fiji finland france gabon gambia georgia germany ghana greece guatemala guinea "
    "guyana haiti honduras hungary iceland india indonesia iran iraq ireland israel italy jamaica japan jordan "
    "kazakhstan kenya korea kuwait kyrgyzstan laos latvia lebanon liberia libya liechtenstein lithuania luxembourg "
    "madagascar malawi malaysia maldives mali malta mauritania mauritius mexico moldova monaco mongolia montenegro "
    "morocco mozambique namibia nepal netherlands nicaragua niger nigeria norway oman pakistan panama paraguay peru "
    "philippines poland portugal qatar romania russia rwanda scotland senegal serbia singapore slovakia slovenia "
    "somalia spain sudan sweden switzerland syria taiwan tajikistan tanzania thailand togo tunisia turkey "
    "turkmenistan uganda uk ukraine uruguay us usa u.s u.s. u.s.a. uzbekistan venezuela vietnam wales yemen zambia "
    "zimbabwe"
)
CITIES = _set(
    "amsterdam athens baghdad bangkok barcelona beijing berlin bonn boston brussels budapest cairo cambridge chicago "
    "copenhagen delhi dublin edinburgh florence geneva göttingen hamburg helsinki istanbul jerusalem johannesburg "
    "kiev königsberg lisbon london madrid manchester melbourne milan montreal moscow mumbai munich nairobi naples "
    "oslo oxford paris prague princeton rome seattle seoul shanghai stockholm sydney tokyo toronto turin venice "
    "vienna warsaw washington york zurich"
)
"""The larger cities of the world, and university cities that occur in posts."""

MONTHS = _set("january february march april may june july august september october november december")

COMMON_NOUNS = _set(
    "theorem lemma proposition corollary definition hint edit note proof question problem example exercise remark "
    "solution answer chapter section case algebra calculus analysis topology geometry claim update axiom "
    "conjecture theory formula induction equation inequality function integral matrix group ring field space set "
    "series sequence limit probability statistics mathematics math physics logic thanks step method property law "
    "rule lcm gcd pdf cdf iff rhs lhs wlog qed integer number prime vector polynomial graph"
)
"""Words that are not names even if capitalised."""

PRONOUNS = _table(
    "i:i me:i my:i mine:i myself:i you:you your:you yours:you yourself:you he:he him:he his:he himself:he she:she "
    "her:she hers:she it:it its:it itself:it we:we us:we our:we ours:we ourselves:we they:they them:they their:they "
    "theirs:they themselves:they u:you"
)
DETERMINERS = _set("a an the")
QUESTION_WORDS = _set("what which who whom whose how why where when what's")
HAVE_ROLE = _set("president mayor governor capital minister king queen leader ceo director head member chairman")
HAVE_RELATION = _set(
    "wife husband son daughter child father mother brother sister parent spouse uncle aunt friend grandfather"
)


_NOUNS = _table(
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
_VERBS = _table(
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
_E_LOST = re.compile(
    r"(?:[^aeiou]at|[aeou]at(?<!eat)|iz|[uio]s(?<!ous)|ys|[aeiou]v|lv|rv|[aeinor]c|[^aeiou][lr](?<!rl)(?<!ll)(?<!rr)|rg|dg|[au]g(?<!ag)"
    r"|[aeiou]ng(?<!ing)(?<!ong)|u|[^aeiou][aiu]r|[^aeiou]ut|ot(?<!oot)|[^aeiou]in(?<!ain)|[^aeiou]id|lud|od|[^aeiou]et"
    r"|[iou]m(?<!oom)|iq|scrib|ak|uk|ap(?<!eap)|ip|yp|op(?<!oop)|[^aeiou]il|ul)$"
)
_E_LOST_IN_COMPARING = re.compile(r"(?:[^aeioul]l|rg|ns|rs|[^aeiou][ai][dnrt]|[aou]s|[^aeiou]ic|av|iv|uc|ut|ur|af|ak)$")
_DOUBLED = re.compile(r"([bdgklmnprt])\1$")


def lemma(word: str, tag: str, known: Mapping[str, str]) -> str:
    kind = "v" if tag[0] == "V" or tag == "MD" else "n" if tag[0] == "N" else "a" if tag[0] in "JR" else ""
    if not kind:
        return word
    irregular = (_VERBS if kind == "v" else _NOUNS if kind == "n" else {}).get(word)
    return irregular or known.get(f"{kind}:{word}") or by_rule(word, tag)


def by_rule(word: str, tag: str) -> str:
    """Return the lemma by spelling only."""
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
