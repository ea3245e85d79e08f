"""The tables of words that the conversion of dependencies to AMR uses."""

from __future__ import annotations


def _table(text: str) -> dict[str, str]:
    """Read ``word:value`` pairs."""
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
"""Verbs whose subject is :ARG1 where they have no object (see `SUBJECT_IS_THING` for those with one)."""

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
"""Words that are no names even if capitalised."""

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
