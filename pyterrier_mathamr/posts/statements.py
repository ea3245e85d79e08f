r"""Statements, not files: a file of notes is cut into units, and each unit becomes a post.

::

    # Series                                       limits.md#series                 text before the first statement
    Some words …
    **Theorem 3.2 (Cauchy–Schwarz).** … {#thm:cs}  limits.md#thm:cs                 with its proof, wherever it is
    *Proof.* …
    **Lemma.** …                                   limits.md#series/lemma-1         the first lemma of that section

`latex_units` and `markdown` find the headings, statements and proofs of a text and report them to an
:class:`Outline` in reading order, which decides on the units. The fragment of a docno is a label, else a number that
the author typed, else the name of a statement, else its section and its number there: nothing that an edit elsewhere
changes.

A statement and its proof are one unit, so that the words of the proof find the theorem. The running text of a
section, without its statements, is also one unit. Text is never in two units.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

SMALL = 1_500
"""Characters of a file, without blanks and commands, below which it stays whole, unless it has two statements."""
LONGEST_FRAGMENT = 150
_LONGEST_SLUG = 60

_KINDS = {
    "theorem": "theorem thm thrm theo satz hauptsatz théorème theoreme teorema stelling statement "
    "теорема 定理 مبرهنة نظرية",
    "lemma": "lemma lem lemme lema hilfssatz лемма 引理 补题 補題 تمهيدية",
    "proposition": "proposition prop prp propn proposición proposizione proposição propositie предложение утверждение "
    "命题 命題 قضية",
    "corollary": "corollary cor coro korollar folgerung corollaire corolario corollario corolário gevolg "
    "следствие 推论 推論 系 نتيجة",
    "definition": "definition def defn defi dfn définition definición definizione definição definitie определение 定义 "
    "定義 تعريف",
    "example": "example ex exm exa exmp beispiel bsp exemple ejemplo esempio exemplo voorbeeld пример "
    "例 例子 例题 例題 مثال",
    "remark": "remark rem rmk bemerkung bem anmerkung remarque observación osservazione observação opmerking nota "
    "comentario commento comentário замечание 注 注记 注意 备注 ملاحظة",
    "exercise": "exercise exer exc exr aufgabe übung exercice ejercicio esercizio exercício opgave упражнение задача "
    "练习 练习题 习题 練習 練習問題 演習 演習問題 تمرين",
    "claim": "claim clm behauptung affirmation afirmación affermazione afirmação assertion 断言 主張",
    "conjecture": "conjecture conj cnj vermutung conjetura congettura conjectura гипотеза 猜想 予想",
    "problem": "problem prob problème problema проблема 问题 問題",
    "question": "question ques frage pregunta domanda pergunta вопрос",
    "axiom": "axiom ax axiome axioma assioma аксиома 公理",
    "fact": "fact fait hecho fatto fato факт 事实 事実",
    "observation": "observation obs beobachtung наблюдение",
    "notation": "notation notación notazione notação обозначение 记号 記号",
    "assumption": "assumption voraussetzung annahme hypothesis hypothèse hipótesis ipotesi hipótese предположение 假设 "
    "仮定",
    "proof": "proof pf prf beweis bew preuve démonstration demonstration prueba demostración dimostrazione prova "
    "demonstração bewijs доказательство 证明 证 証明 برهان البرهان إثبات",
    "solution": "solution sol lösung solución soluzione solução oplossing решение 解 解答 حل",
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_PRINTED = frozenset(name for name in _KIND_OF if len(name) > 4 or not name.isascii()) | {"fact", "satz", "lema"}
PROOFS = frozenset(["proof", "solution"])
_PROVEN = {
    **dict.fromkeys(["theorem", "lemma", "proposition", "corollary", "claim", "fact", "observation"], "proof"),
    **dict.fromkeys(["exercise", "problem", "question", "example"], "solution"),
}


def printed_name(name: str, kind: str) -> str:
    """Return the name that is printed before the statement of an environment."""
    return (name if name.lower() in _PRINTED else kind).capitalize()


def kind_of(name: str) -> str:
    """Return the kind of an environment, or of a printed name; empty if it is not a statement."""
    words = name.lower().strip(" *.:").split()
    return next((_KIND_OF[word] for word in (*words[-1:], *words[:1]) if word in _KIND_OF), "")


class Lead(NamedTuple):
    """The words that a statement or proof begins with: ``Theorem 3.2 (Cauchy–Schwarz)``."""

    kind: str
    name: str
    number: str
    note: str


_NUMBER = r"(?:§?\d{1,4}(?:\.\d{1,4}){0,5}[a-z]?['*]?|[A-Z](?:\.\d{1,4}){0,3}|[IVX]{1,6})(?![^\W_])"
_LEAD = re.compile(
    rf"(?P<name>[^\W\d_]{{1,20}})(?:[ \t~]*(?P<number>{_NUMBER}))?"
    r"(?:[ \t]*\((?P<note>(?:[^()]|\([^()]{0,200}\)){1,300})\)|[ \t]*\[(?P<bracketed>[^\[\]]{1,300})\])?"
    r"(?:(?:[ \t]*[.:：。][ \t]*|[ \t]+[—–-]{1,3}[ \t]+)(?P<rest>[^\n]{0,200}))?",
)
_PROOF_OF = re.compile(
    r"(?P<name>[^\W\d_]{1,20})[ \t]+(?:of|von|des|der|du|de|di|da|van|for|to)[ \t]+(?P<of>[^\n]{1,300})", re.IGNORECASE
)


_A_PROOF = re.compile(
    r"(?:(?:first|second|third|another|alternative|short|direct) proof|proof (?:sketch|idea|outline)"
    r"|(?:sketch|idea|outline) of (?:the )?proof)[ \t]*[.:]?",
    re.IGNORECASE,
)


def lead_of(text: str) -> Lead | None:
    """Read bold text or a heading as the beginning of a statement or proof, if it is one."""
    text = text.strip()
    if len(text) > 700:
        return None
    if (of := _PROOF_OF.match(text)) and _KIND_OF.get(of["name"].lower()) in PROOFS:
        return Lead(_KIND_OF[of["name"].lower()], of["name"], "", text.rstrip(" .:"))
    if _A_PROOF.fullmatch(text):
        return Lead("proof", "Proof", "", text.rstrip(" .:"))
    match = _LEAD.fullmatch(text)
    if match is None or match["name"].lower() not in _PRINTED:
        return None
    note = match["note"] or match["bracketed"] or (match["rest"] or "").strip(" .:")
    return Lead(_KIND_OF[match["name"].lower()], match["name"], match["number"] or "", note)


_NUMBERED = re.compile(r"(?:§[ \t]*)?(?P<number>\d{1,3}(?:\.\d{1,3}){0,4})[.)]?(?:[ \t]+(?P<rest>\S[^\n]*))?")
_REFERRED = re.compile(
    r"\\(?:[cC](?:re|page)f|(?:auto|eq|name|full|v)?ref)\*?\s*+\{([^{}\n]{1,300})\}|\\hyperref\s*+\[([^\[\]\n]{1,300})\]"
    r"|[#@](\^?[\w:.-]{1,200})|\{[a-z:]{0,20}ref\}`([^`\n]{1,200})`"
)
_NAMED = re.compile(rf"([^\W\d_]{{1,20}})[ \t~]+({_NUMBER})")


def numbered_lead(text: str) -> tuple[Lead | None, str]:
    """Read the first words of a paragraph: as a statement or proof, and the number that comes first.

    ``Theorem 3.2 (Cauchy)`` and ``3.2 Theorem (Cauchy)`` are the same statement; ``3.2 Compactness`` is no statement.
    """
    if lead := lead_of(text):
        return lead, ""
    match = _NUMBERED.fullmatch(text.strip())
    if match is None:
        return None, ""
    lead = lead_of(match["rest"] or "")
    return (lead._replace(number=lead.number or match["number"]) if lead else None), match["number"]


def series(numbers: Mapping[int, str]) -> frozenset[int]:
    """Return the places of the numbers of paragraphs, if there are at least two and they increase."""
    values = [tuple(map(int, number.split("."))) for number in numbers.values()]
    increase = all(one < other for one, other in pairwise(values))
    return frozenset(numbers) if increase and len(values) > 1 else frozenset()


class Unit(NamedTuple):
    """A part of a file that becomes a post, in the markup of the file.

    Attributes:
        fragment: its suffix to the file in its docno; empty for a whole file and for the text before its first heading.
        title: ``Theorem 3.2 (Cauchy--Schwarz)``, or the heading; may be empty.
        text: without the title.
        kind: ``theorem`` and the like, ``section``, ``paragraph``; ``file`` for a whole file without these.
        section: headings of the sections that it is in, the outermost first.
        line: where it begins, from 1; 0 for a whole file.
    """

    fragment: str
    title: str
    text: str
    kind: str
    section: tuple[str, ...] = ()
    line: int = 0


@dataclass(eq=False)
class Draft:
    """A candidate for a unit."""

    file: str  # in which it begins
    title: str  # in the markup of the file
    kind: str  # see :class:`Unit`
    line: int  # of its heading or first word, from 1
    order: int  # its place in reading order
    section: tuple[str, ...]  # headings around it
    under: Draft | None  # the heading of the same file that it is under
    level: int = 0  # of a heading
    name: str = ""  # of a statement: "Theorem"
    given: str = ""  # the part of its fragment that the author typed as its name or number
    label: str = ""  # given by the author
    pieces: list[tuple[int, str]] = field(default_factory=list)  # its text, each piece with its place in reading order
    foreign: bool = False  # it holds text of another file

    @property
    def is_prose(self) -> bool:
        return self.kind == "section"


class Outline:
    """The headings, statements and proofs of one or more files, added in reading order.

    Attributes:
        open: the statement or proof to which text belongs; if there is none, text belongs to the section.
    """

    def __init__(self) -> None:
        self.open: Draft | None = None
        self._drafts: dict[str, list[Draft]] = {}
        self._order = 0
        self._sections: list[tuple[int, str]] = []
        self._headings: dict[str, list[Draft]] = {}
        self._prose: dict[str, Draft] = {}
        self._recent: Draft | None = None  # the last statement of the section
        self._proven: dict[str, Draft] = {}  # the last one that has a proof, and the last one that has a solution
        self._by_label: dict[str, Draft] = {}
        self._by_name: dict[str, Draft] = {}

    def begin_file(self, file: str, title: str = "", line: int = 1) -> None:
        """Begin a file, whose text belongs to it until there is a heading."""
        self._headings[file] = []
        self._prose[file] = self._draft(file, title, "section", line)

    def heading(self, file: str, level: int, title: str, line: int, label: str = "") -> None:
        self.open = None
        self.end_sections(level)
        above = self._headings[file]
        while above and above[-1].level >= level:
            above.pop()
        draft = self._prose[file] = self._draft(file, title, "section", line, label)
        draft.level = level
        above.append(draft)
        self._sections.append((level, title))
        self._recent, self._proven = None, {}

    def end_sections(self, level: int) -> None:
        """End the sections of a level and the sections in them."""
        while self._sections and self._sections[-1][0] >= level:
            self._sections.pop()

    def part(self, file: str, kind: str, fragment: str, title: str, line: int, label: str = "") -> None:
        """Begin a further part of a section: a numbered paragraph, or a cell of a notebook."""
        self.open = None
        self._prose[file] = self._draft(file, title, kind, line, label, given=fragment)

    def begin(self, file: str, lead: Lead, line: int, label: str = "", printed: str = "") -> None:
        """Begin a statement or proof, where ``printed`` is the number that LaTeX would print."""
        if lead.kind in PROOFS:
            self.open = self._proof(file, lead, line)
            return
        number = lead.number or printed
        title = f"{lead.name}{f' {number}' if number else ''}{f' ({lead.note})' if lead.note else ''}"
        given = f"{lead.name} {lead.number or lead.note}" if lead.number or lead.note else ""
        draft = self.open = self._draft(file, title, lead.kind, line, label, name=lead.name, given=given)
        self._recent = draft
        if draft.kind in _PROVEN:
            self._proven[_PROVEN[draft.kind]] = draft
        self._by_name.setdefault(f"{lead.name} {number}".lower(), draft)

    def _proof(self, file: str, lead: Lead, line: int) -> Draft:
        """Return the draft to which a proof belongs: its statement, its section, or a new one."""
        labels = [
            name.strip() for match in _REFERRED.finditer(lead.note) for name in match[match.lastindex or 0].split(",")
        ]
        refers = [name for name in labels if name] or [f"{match[1]} {match[2]}" for match in _NAMED.finditer(lead.note)]
        named = (self._by_label.get(name) or self._by_name.get(name.lower()) for name in refers)
        target = next(filter(None, named), None)
        words = lead.name if target else lead.note or lead.name
        if target is None and not refers:
            prose = self._prose[file]
            has_text = any(not text.isspace() for _, text in prose.pieces)
            target = self._proven.get(lead.kind) or self._recent or (prose if has_text else None)
        if target is None:
            title = lead.note if _PROOF_OF.match(lead.note) else lead.name
            return self._draft(file, title, lead.kind, line, name=lead.name, given=lead.note)
        self._add(target, f"{words}.", file)
        return target

    def write(self, file: str, text: str) -> None:
        """Add text to the statement or proof that is open, or to the section."""
        if text:
            self._add(self.open or self._prose[file], text, file)

    def _add(self, draft: Draft, text: str, file: str) -> None:
        self._order += 1
        draft.pieces.append((self._order, text))
        draft.foreign = draft.foreign or file != draft.file

    def label(self, draft: Draft, label: str) -> None:
        """Add a label by which a draft is referred to."""
        draft.label = draft.label or label
        self._by_label.setdefault(label, draft)

    def _draft(
        self, file: str, title: str, kind: str, line: int, label: str = "", *, name: str = "", given: str = ""
    ) -> Draft:
        self._order += 1
        section = tuple(title for _, title in self._sections)
        under = next(reversed(self._headings[file]), None)
        draft = Draft(file, title, kind, line, self._order, section, under, name=name, given=given)
        if label:
            self.label(draft, label)
        self._drafts.setdefault(file, []).append(draft)
        return draft

    def units(self, file: str, shown: Callable[[str], str], plain: Callable[[str], str], whole: bool) -> list[Unit]:
        """Return the units of a file.

        ``shown`` returns the visible text of a piece, at least as long; ``plain`` a title without markup.
        """
        drafts = self._drafts.get(file, [])
        size = sum(len(shown(text)) for draft in drafts for _, text in draft.pieces)
        if not size and not any(draft.title for draft in drafts):
            return []
        statements = [draft for draft in drafts if not draft.is_prose and draft.kind != "paragraph"]
        foreign = any(draft.foreign for draft in drafts)
        if whole or (size < SMALL and len(statements) <= 1 and not foreign):
            return [_whole(drafts, statements, shown)]
        kept = _kept(drafts, shown) or drafts[:1]
        above = () if drafts[0] in kept or not drafts[0].title else (drafts[0].title,)  # of the file
        fragments = _fragments(kept, drafts, plain)
        return [
            Unit(fragment, draft.title, _text(draft.pieces), draft.kind, (*above, *draft.section), draft.line)
            for draft, fragment in zip(kept, fragments, strict=True)
        ]


def _text(pieces: Iterable[tuple[int, str]]) -> str:
    return "\n\n".join(text.strip("\n") for _, text in sorted(pieces))


def _whole(drafts: list[Draft], statements: list[Draft], shown: Callable[[str], str]) -> Unit:
    """Make one unit of a file: the first heading is its title if nothing comes before."""
    pieces: list[tuple[int, str]] = []
    title, section = "", drafts[0].section
    for draft in drafts:
        if draft.title and not title and not any(shown(text) for _, text in pieces):
            title, section = draft.title, draft.section
        elif draft.title:
            pieces.append((draft.order, draft.title + ("" if draft.is_prose else ".")))
        pieces += draft.pieces
    kind = statements[0].kind if len(statements) == 1 else "file"
    return Unit("", title, _text(pieces), kind, section)


def _kept(drafts: list[Draft], shown: Callable[[str], str]) -> list[Draft]:
    """Leave out sections without own text, whose titles are only the context of the units in them."""
    kept: list[Draft] = []
    for i, draft in enumerate(drafts):
        following = drafts[i + 1].section if i + 1 < len(drafts) else ()
        is_context = not draft.level or following[: len(draft.section) + 1] == (*draft.section, draft.title)
        has_formula = "$" in draft.title or r"\(" in draft.title  # which is found as a formula of its own post
        has_text = any(shown(text) for _, text in draft.pieces)
        if has_text or has_formula or draft.given or not (draft.is_prose and is_context):
            kept.append(draft)
    return kept


def slug(text: str) -> str:
    """Write a text as in a web address: letters and digits of any script, joined by ``-``."""
    words = re.sub(r"[\W_]+", "-", unicodedata.normalize("NFC", text[:1_000]).casefold()).strip("-")
    if len(words) > _LONGEST_SLUG:
        words = words[: words.rfind("-", 0, _LONGEST_SLUG) if "-" in words[20:_LONGEST_SLUG] else _LONGEST_SLUG]
    return words


def _fragments(kept: list[Draft], drafts: list[Draft], plain: Callable[[str], str]) -> list[str]:
    """Name the units, labels first, so that no other name uses them."""
    names: dict[int, str] = {}
    counted: Counter[tuple[int, str]] = Counter()
    for draft in drafts:
        counted[id(draft.under), draft.name] += 1
        above = f"{names[id(draft.under)]}/" if draft.under else ""
        if draft.label:
            name = draft.label
        elif draft.level:
            name = above + (slug(plain(draft.title)) or "section")
        elif draft.kind == "paragraph":
            name = draft.given
        elif draft.is_prose:
            name = above + draft.given  # of the text before the first heading nothing
        elif re.fullmatch(rf"\S+ {_NUMBER}", draft.given):
            name = draft.given.lower().replace(" ", "-")
        elif draft.given:
            name = slug(plain(draft.given))
        else:
            name = f"{above}{slug(draft.name)}-{counted[id(draft.under), draft.name]}"
        names[id(draft)] = short_fragment(" ".join(name.split()))
    taken: Counter[str] = Counter()
    for draft in sorted(kept, key=lambda draft: not draft.label):
        name = names[id(draft)]
        taken[name] += 1
        while taken[name] > 1:  # "remark-2" may be another unit's name
            taken[name := f"{names[id(draft)]}-{taken[names[id(draft)]]}"] += 1
            taken[names[id(draft)]] += taken[name] > 1
        names[id(draft)] = name
    return [names[id(draft)] for draft in kept]


def short_fragment(fragment: str) -> str:
    """Cut a fragment that is too long, and make the cut one differ from others."""
    if len(fragment) <= LONGEST_FRAGMENT:
        return fragment
    digest = hashlib.sha256(fragment.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{fragment[: LONGEST_FRAGMENT - 9]}-{digest}"
