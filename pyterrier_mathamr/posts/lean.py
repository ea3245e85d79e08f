r"""Lean 4: each declaration of a file is a unit, read from its text; Lean itself is not run.

::

    namespace Nat                                     Basic.lean#Nat.double_pos
    variable {m n : ℕ} (k : ℕ)                        theorem, line 4
    /-- Twice $n$ is positive. -/
    @[simp] theorem double_pos (h : 0 < n) :          theorem Nat.double_pos (h : 0 < n) : 0 < 2 * n
        0 < 2 * n := by omega                         variable {n : ℕ}
    end Nat                                           $0 < 2 \cdot n$  Twice $n$ is positive.  nat double pos

A unit is Markdown: the signature as code, in one line; the fields or constructors of a structure, class or inductive
type; the variables in scope that it mentions, and the instances that are about only these; the claim of a theorem as a
formula; the docstring; and the words of the name. The documentation of a module is a unit, too; the
headings that its parts begin with are sections.

Commands begin a line. Names that Lean derives, such as those of ``to_additive``, are not known; an instance without a
name gets one like Lean's.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .markdown import fence_around
from .statements import Unit, short_fragment

_LONGEST = 4_000  # characters of a signature, and of the fields after it; more are cut
_MOST_TOKENS = 2_000  # of a signature
_LONGEST_NAMESPACE = 300
_LONGEST_VARIABLE, _MOST_VARIABLES = 400, 100  # characters; variables that are examined for one signature

_FIELDS = frozenset(["structure", "class", "inductive", "coinductive"])
_CLAIMING = frozenset(["theorem", "lemma", "axiom"])
_DECLARING = _FIELDS | _CLAIMING | frozenset(["def", "irreducible_def", "abbrev", "instance", "opaque"])
_MODIFIERS = frozenset([
    "private", "protected", "public", "noncomputable", "unsafe", "partial", "nonrec", "local", "scoped", "meta"
])  # fmt: skip
_WITH_IN = frozenset(["open", "variable", "include", "omit", "universe", "set_option", "attribute", "export", "#"])
"""Commands that ``in`` restricts to the next one."""
_COMMANDS = _DECLARING | _WITH_IN | frozenset(["namespace", "section", "mutual", "end", "example", "deriving", "alias"])
_FIRST_COMMANDS = frozenset([
    "notation", "notation3", "infix", "infixl", "infixr", "prefix", "postfix", "macro", "macro_rules", "syntax", "elab",
    "elab_rules", "simproc", "initialize", "run_cmd", "import", "/--", "/-!"
])  # fmt: skip
"""Commands at the beginning of a line; after blanks they are something else."""
_BINDING = frozenset(["∀", "∃", "∃!", "λ", "Σ", "Π", "∑", "∏", "⋃", "⋂", "⨆", "⨅", "∫", "fun"])

_LETTERS = "A-Za-z_À-ÖØ-öø-ſͰ-ΟΡΤ-κμ-ϻἀ-῾\u2100-\u214f\U0001d49c-\U0001d59f"  # Lean's: without λ, Π, Σ
_PART = rf"(?:[{_LETTERS}][{_LETTERS}0-9'!?₀-₉ₐ-ₜᵢ-ᵪⱼ]*+|«[^»\n]{{0,200}}»)"
_TOKEN = re.compile(
    rf"""
      (?P<blank>\s+|--[^\n]*)
    | (?P<comment>/-(?:[-!](?!/))?)
    | (?P<literal>(?<![{_LETTERS}0-9])r(?P<mark>\#*)"(?:.*?)(?:"(?P=mark)|\Z)|"(?:[^"\\]|\\.)*+(?:"|\\?\Z)
        |(?<![{_LETTERS}0-9'])'(?:[^'\\\n]|\\[^\n][^'\n]{{0,8}})'|\d[\w.]*)
    | (?P<name>{_PART}(?:\.{_PART})*)
    | (?P<open>@\[|[(\[{{⟨⦃])
    | (?P<close>[)\]}}⟩⦄])
    | (?P<sign>:=|∃!|\|\|+|<\|>?|\|>|⁻¹'|''|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/-|-/")
_HEADING = re.compile(r"^(#{1,6})[ \t]+([^\n]+)", re.M)
_HUMP = re.compile(r"(?<=[a-zα-ω0-9])(?=[A-ZΑ-Ω])|(?<=[A-Z])(?=[A-Z][a-z])|[\W_]+")


class LeanToken(NamedTuple):
    """A token of Lean."""

    kind: str
    text: str  # of a documentation only its first mark
    start: int
    end: int
    line: int
    begins: bool  # whether a command may begin here


def _tokens(text: str) -> Iterator[LeanToken]:
    """Cut a file into tokens, without blanks and comments; a docstring is one token. The last one is empty."""
    at, line, depth = 0, 1, 0
    indent = 0  # of the line, until its first token; then -1
    while match := _TOKEN.match(text, at):
        kind, token, start, at = match.lastgroup or "", match[0], at, match.end()
        if kind == "comment":  # comments may be nested
            level = 1
            while level and (edge := _COMMENT_EDGE.search(text, at)):
                level += 1 if edge[0] == "/-" else -1
                at = edge.end()
            at = len(text) if level else at
        begun, line = line, line + text.count("\n", start, at)
        if kind == "blank" or token == "/-":
            if kind == "blank" and line > begun:
                indent = at - text.rfind("\n", start, at) - 1
            elif indent >= 0:
                indent += at - start
            continue
        is_command = token in _COMMANDS or token in _MODIFIERS or token == "@["
        begins = (indent >= 0 and not depth and is_command) or (
            indent == 0 and (is_command or token in _FIRST_COMMANDS)
        )
        if begins and indent == 0:
            depth = 0
        depth = max(depth + (kind == "open") - (kind == "close"), 0)
        indent = indent if kind == "comment" else -1
        yield LeanToken(kind, token, start, at, begun, begins)
    yield LeanToken("end", "", len(text), len(text), line, True)


def _source(tokens: Sequence[LeanToken]) -> str:
    """Write tokens in one line, without comments."""
    parts: list[str] = []
    for before, token in zip([*tokens[:1], *tokens], tokens, strict=False):
        parts += [" ", token.text] if before.end < token.start else [token.text]
    return "".join(parts)


def _mentioned(head: Sequence[LeanToken]) -> list[str]:
    """List the names in a signature that it does not bind itself; of ``x.foo`` it is ``x``."""
    names: dict[str, None] = {}
    bound: set[str] = set()
    depth, binders, binding = 0, 0, True  # binders: the depth at which names are bound, -1 for none
    for token in head:
        if token.text in _BINDING:
            binders, binding = depth, True
        elif token.kind == "name":
            name = token.text.partition(".")[0]
            if token.text == "extends" and not depth:
                binders, binding = -1, False
            elif binding:
                bound.add(name)
            else:
                names[name] = None
        elif token.kind == "open":
            depth += 1
            binding = binding and token.text != "["
        elif token.kind == "close":
            depth -= 1
            binding = depth == binders
        elif token.kind == "sign":
            binding = False
            binders = -1 if depth == binders else binders
    return [name for name in names if name not in bound]


class _Binder(NamedTuple):
    """A group of variables: ``{x y : G}``."""

    opening: str
    names: tuple[str, ...]
    typed: str  # ``: G``
    closing: str
    mentions: tuple[str, ...]  # the variables in it


class _Variables:
    """The variables in scope."""

    def __init__(self) -> None:
        self._binders: list[_Binder] = []
        self._named: dict[str, list[int]] = {}
        self._instances: dict[str, list[int]] = {}  # by the variables that they are about

    def __len__(self) -> int:
        return len(self._binders)

    def declare(self, group: Sequence[LeanToken]) -> None:
        """Add a group in brackets; one without a type changes only the brackets of variables that have one."""
        opening, closing = group[0].text, group[-1].text
        untyped = -1 if opening == "[" else len(group) - 1
        colon = next((i for i, token in enumerate(group) if token.text == ":"), untyped)
        names = tuple(token.text for token in group[1 : max(colon, 1)] if token.kind == "name")
        typed, about = _source(group[max(colon, 1) : -1]), group[max(colon, 0) + 1 : -1]
        if len(typed) > _LONGEST_VARIABLE:
            return
        if typed or not all(name in self._named for name in names):
            mentions = (token.text.partition(".")[0] for token in about if token.kind == "name")
            known = tuple(dict.fromkeys(name for name in mentions if name in self._named))
            gap = " " if names and typed else ""
            self._add(_Binder(opening, names, gap + typed, closing, known))
        else:
            for name in names:
                _, _, typed, _, known = self._binders[self._named[name][-1]]
                self._add(_Binder(opening, (name,), typed, closing, known))

    def _add(self, binder: _Binder) -> None:
        for name in binder.names:
            self._named.setdefault(name, []).append(len(self._binders))
        for name in binder.mentions if binder.opening == "[" else ():
            self._instances.setdefault(name, []).append(len(self._binders))
        self._binders.append(binder)

    def cut(self, count: int) -> None:
        """Leave only so many, the first ones."""
        while len(self._binders) > count:
            binder = self._binders.pop()
            for name in binder.names:
                self._named[name].pop()
                if not self._named[name]:
                    del self._named[name]
            for name in binder.mentions if binder.opening == "[" else ():
                self._instances[name].pop()

    def written(self, names: Sequence[str]) -> str:
        """Write the variables that a signature with these names has."""
        chosen: dict[int, set[str]] = {}
        known: set[str] = set()
        waiting, left = list(names), _MOST_VARIABLES
        for name in waiting:
            if name in known or name not in self._named:
                continue
            known.add(name)
            place = self._named[name][-1]
            chosen.setdefault(place, set()).add(name)
            waiting += self._binders[place].mentions
            for instance in self._instances.get(name, ())[:left]:
                left -= 1
                if known.issuperset(self._binders[instance].mentions):
                    chosen.setdefault(instance, set()).update(self._binders[instance].names)
            left -= 1
            if left <= 0:
                break
        groups = []
        for place, mentioned in sorted(chosen.items()):
            opening, names, typed, closing, _ = self._binders[place]
            groups.append(f"{opening}{' '.join(name for name in names if name in mentioned)}{typed}{closing}")
        return " ".join(groups)


class _Declaration(NamedTuple):
    """A declaration whose end is not known yet."""

    kind: str
    name: str
    doc: str
    line: int
    head: list[LeanToken]  # its signature after the name
    mentions: list[str]
    fields: int  # where its fields begin; -1 for a kind without fields


class _File:
    """Reads a file, command by command."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._rest = _tokens(text)
        self._token = next(self._rest)
        self._scopes: list[tuple[str, int]] = []  # the namespace around each, and the number of variables there
        self._namespace = ""
        self._variables = _Variables()
        self._lasting = -1  # the number of variables without those of ``variable … in``; -1 where there are none
        self._declared: _Declaration | None = None
        self._doc = ""
        self._sections: list[tuple[int, str]] = []
        self._fragments: Counter[str] = Counter()
        self.units: list[Unit] = []
        self.modules: list[tuple[int, str]] = []  # the documentation of the module, each with its line

    def _take(self) -> LeanToken:
        token = self._token
        self._token = next(self._rest, token)
        return token

    def read(self) -> None:
        start = 0
        while self._token.kind != "end":
            token = self._token
            if token.text == "/--":
                start, self._doc = token.start, self._documentation()
                continue
            if token.text == "/-!":  # the documentation of a module, whose first heading begins a section
                self._finish(token.start)
                text = self._documentation()
                self.modules.append((token.line, text))
                if heading := _HEADING.search(text):
                    while self._sections and self._sections[-1][0] >= len(heading[1]):
                        self._sections.pop()
                    self._sections.append((len(heading[1]), heading[2].strip()))
            elif token.begins:
                self._command(start if self._doc else token.start)
            else:
                self._take()
                if self._declared and token.kind == "name" and len(self._declared.mentions) < _MOST_TOKENS:
                    self._declared.mentions.append(token.text.partition(".")[0])
            self._doc = ""
        self._finish(len(self._text))

    def _documentation(self) -> str:
        token = self._take()
        return textwrap.dedent("   " + self._text[token.start + 3 : token.end].removesuffix("-/")).strip()

    def _command(self, start: int) -> None:
        """Read a command, whose docstring or first word begins at a place."""
        is_first = start == 0 or self._text[start - 1] == "\n"
        while True:
            token = self._token
            if token.text == "@[":
                self._group()
            elif token.text == "/--":
                self._doc = self._documentation()
            elif token.text in _MODIFIERS:
                self._take()
            elif token.text in _DECLARING:
                self._finish(start)
                self._declare(self._take())
                return
            elif token.text in ("namespace", "section", "mutual", "end"):
                self._finish(start)
                self._scope(self._take())
                return
            elif token.text in _WITH_IN:
                if is_first:
                    self._finish(start)
                if not self._restricts(self._take()):
                    return
            else:
                if is_first and token.text in _COMMANDS:
                    self._finish(start)
                if token.kind != "end":
                    self._take()
                return

    def _group(self) -> list[LeanToken]:
        """Read a group in brackets; of a long one, the first tokens and the last."""
        group, depth = [self._take()], 1
        while depth and not self._token.begins:
            token = self._take()
            depth += (token.kind == "open") - (token.kind == "close")
            if len(group) < _MOST_TOKENS or not depth:
                group.append(token)
        return group

    def _restricts(self, command: LeanToken) -> bool:
        """Read a command such as ``open``; return whether ``in`` follows it, so that it is about the next command."""
        variables = len(self._variables)
        depth = 0
        while not self._token.begins:
            if command.text == "variable" and self._token.kind == "open":
                group = self._group()
                if len(group) > 2 and group[-1].kind == "close":
                    self._variables.declare(group)
                continue
            token = self._take()
            depth += (token.kind == "open") - (token.kind == "close")
            if token.text == "in" and depth <= 0:
                if command.text == "variable" and self._lasting < 0:
                    self._lasting = variables
                return True
        return False

    def _scope(self, command: LeanToken) -> None:
        token = self._token
        names = self._take().text.split(".") if token.kind == "name" and not token.begins else []
        if command.text == "end":
            for _ in names or [""]:
                if self._scopes:
                    self._namespace, variables = self._scopes.pop()
                    self._variables.cut(variables)
            return
        for name in names or [""]:
            self._scopes.append((self._namespace, len(self._variables)))
            if command.text == "namespace" and len(self._namespace) < _LONGEST_NAMESPACE:
                self._namespace += f"{name}."

    def _declare(self, keyword: LeanToken) -> None:
        if keyword.text == "class" and self._token.text in ("inductive", "abbrev"):
            self._take()
        has_fields = keyword.text in _FIELDS
        head: list[LeanToken] = []
        depth = 0
        while not self._token.begins:
            token = self._token
            if token.text == "|":  # the bars of ``|x|`` have no blank at their inner sides
                around = self._text[token.start - 1] + self._text[token.end : token.end + 1]
                ends = has_fields or around.isspace()
            else:
                ends = token.text in (":=", "where")
            if ends and depth <= 0:
                break
            self._take()
            depth += (token.kind == "open") - (token.kind == "close")
            if len(head) < _MOST_TOKENS and token.kind != "comment":
                head.append(token)

        def skip(closing: str) -> None:
            del head[: next((i for i, token in enumerate(head) if token.text == closing), len(head)) + 1]

        if keyword.text == "instance" and [token.text for token in head[:2]] == ["(", "priority"]:
            skip(")")
        name = head.pop(0).text if head and head[0].kind == "name" else ""
        if [token.text for token in head[:2]] == [".", "{"]:  # universes
            skip("}")
        if not name and keyword.text == "instance":  # roughly as Lean: ``instAddFoo`` for ``instance : Add Foo``
            names = [token.text.rpartition(".")[2] for token in _type(head) if token.kind == "name"]
            name = "inst" + "".join(part for part in names if part[0].isupper() and len(part) > 1)[:60]
        if not name:
            return
        full = name.removeprefix("_root_.") if name.startswith("_root_.") else self._namespace + name
        fields = self._token.start if has_fields else -1
        self._declared = _Declaration(keyword.text, full, self._doc, keyword.line, head, _mentioned(head), fields)
        if not has_fields:
            self._finish(fields)

    def _finish(self, end: int) -> None:
        """Make a unit of the last declaration, whose fields end at a place."""
        declared, self._declared = self._declared, None
        if declared is None:
            return
        kind, name, doc, line, head, mentions, fields = declared
        variables = self._variables.written(mentions)
        if self._lasting >= 0:
            self._variables.cut(self._lasting)
            self._lasting = -1
        code = f"{kind} {name} {_source(head)}".rstrip()[:_LONGEST]
        if fields >= 0:
            code += "\n" + textwrap.dedent(self._text[fields : min(end, fields + _LONGEST)]).strip()
        fragment = short_fragment(" ".join(name.split()))
        self._fragments[fragment] += 1
        if self._fragments[fragment] > 1:
            fragment = f"{fragment}-{self._fragments[fragment]}"
        code += f"\nvariable {variables}" if variables else ""
        words = " ".join(_HUMP.sub(" ", name).lower().split())
        claim = claim_latex(_type(head)) if kind in _CLAIMING else ""
        claim = f"$$\n{claim}\n$$" if claim else ""
        fence = fence_around(code)
        text = "\n\n".join(filter(None, [f"{fence}\n{code}\n{fence}", claim, doc, words]))
        section = tuple(title for _, title in self._sections)
        self.units.append(Unit(fragment, f"`{name.replace('`', chr(39))}`", text, kind, section, line))


def lean_units(text: str, *, whole: bool) -> list[Unit]:
    """Read the declarations of a file, and first the documentation of its module, if there is any."""
    file = _File(text)
    file.read()
    about = "\n\n".join(doc for _, doc in file.modules)
    heading = _HEADING.match(about)
    title = heading[2].strip() if heading else ""
    about = about[heading.end() :].strip() if heading else about
    if whole:
        return [Unit("", title, "\n\n".join([about, *(unit.text for unit in file.units)]), "file")]
    return [*([Unit("", title, about, "module", (), file.modules[0][0])] if about else []), *file.units]


def _type(head: Sequence[LeanToken]) -> Sequence[LeanToken]:
    """Return the tokens of a signature after its colon."""
    depth = 0
    for i, token in enumerate(head):
        depth += (token.kind == "open") - (token.kind == "close")
        if token.text == ":" and not depth:
            return head[i + 1 :]
    return ()


# ---- the claims of theorems as LaTeX, so that formulas are found in them
#
#     ∑ i ∈ s, f i ≤ (n : ℝ) ^ 2        ∑_{i ∈ s} f(i) ≤ n^{2}
#     Real.sqrt (x + 1) = s.card        \sqrt{x + 1} = \text{card}(s)
#
# Two terms with a blank between them are a function and its argument. Of a name with dots the last part is kept; a
# variable before it is the first argument. Words are text, type ascriptions and coercions are left out. Nothing is
# elaborated: notation that a library defines stays as it is written.

_BIG = {"∑": r"\sum", "∏": r"\prod", "⋃": r"\bigcup", "⋂": r"\bigcap", "⨆": r"\sup", "⨅": r"\inf"}
_BINDERS = frozenset(["∀", "∃", "∃!", "λ", "fun", "Σ", "Π", "∫"])
_WORDS = frozenset(["fun", "if", "then", "else", "let", "have", "in"])
"""Keywords, which are neither functions nor arguments."""
_POSTFIX = frozenset("⁻⁰¹²³⁴⁵⁶⁷⁸⁹ᵀᶜ!")
_SIGNS = {
    "*": r"\cdot", "{": r"\{", "}": r"\}", "⟨": r"\langle ", "⟩": r"\rangle", "⦃": r"\{", "⦄": r"\}", "@[": "[",
    "\\": r"\setminus", "#": r"\#", "%": r"\bmod", "&": r"\&", "$": r"\$", "~": r"\sim", "‖": r"\Vert", "_": r"\_",
    "∃!": r"\exists!", "↦": r"\mapsto", "λ": r"\lambda", "⁻¹'": "^{-1}", "''": "",
}  # fmt: skip
_POOR = frozenset(".,:;@?!↑")  # signs that make no formula
_FUNCTIONS = frozenset([
    "sin", "cos", "tan", "cot", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "log", "exp", "gcd", "max", "min",
    "det", "dim", "ker", "deg"
])  # fmt: skip


@dataclass
class _Claim:
    """The content of brackets, or the variables of a big operator, as far as it was read."""

    opening: str = ""
    is_apart: bool = False  # whether a blank comes before it
    big: str = ""
    written: list[str] = field(default_factory=list)
    applied: list[str] = field(default_factory=list)  # a function and its arguments
    power: bool = False  # whether these are an exponent
    lists: bool = False  # whether these are variables of ``∀ x y, …``
    binds: bool = False  # whether such variables came before
    is_typed: bool = False  # whether the rest is the type of ``(0 : ℝ)``

    def add(self, latex: str, is_apart: bool) -> None:
        if is_apart or not self.applied:
            self.applied.append(latex)
        else:
            self.applied[-1] += latex

    def sign(self, text: str, is_apart: bool) -> None:
        if text in _POSTFIX and self.applied and not is_apart:
            self.applied[-1] += text
            return
        self.flush()
        self.lists = text in _BINDERS
        self.binds = self.binds or self.lists
        if text == "^" and self.written:
            self.power = True
        elif text == ":" and self.opening == "(" and not self.binds:
            self.is_typed = True
        else:
            gap = " " if is_apart else ""
            self.written.append(gap + (rf"\text{{{text} }}" if text in _WORDS else _SIGNS.get(text, text)))

    def flush(self) -> None:
        """Write the function that was read, and its arguments."""
        if self.applied:
            function, *arguments = self.applied
            inside = ", ".join(map(_bare, arguments))
            opening, closing = ("", "") if not arguments else "{}" if function == r"\sqrt" else "()"
            latex = ", ".join(self.applied) if self.lists else f"{function}{opening}{inside}{closing}"
            self.written.append(f"^{{{_bare(latex)}}}" if self.power else f" {latex}")
        self.applied, self.power = [], False

    def latex(self, closing: str) -> str:
        self.flush()
        inside = "".join(self.written).strip()
        if self.big:
            return f"{self.big}_{{{inside}}}"
        if self.is_typed and len(self.written) == 1:
            return inside
        return f"{_SIGNS.get(self.opening, self.opening)}{inside}{_SIGNS.get(closing, closing)}"


def _bare(latex: str) -> str:
    """Take the parentheses off that enclose all of an expression."""
    depth = 0
    for i, sign in enumerate(latex):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return latex[1:-1] if 0 < i == len(latex) - 1 else latex
    return latex


def claim_latex(tokens: Sequence[LeanToken]) -> str:
    """Write a claim as LaTeX, whose brackets may be unbalanced; the empty text if it is only words."""
    if not any(token.kind == "sign" and token.text not in _POOR for token in tokens):
        return ""
    parts, end = [_Claim()], 0

    def close(closing: str) -> None:
        part = parts.pop()
        latex = part.latex(closing)
        if part.big:
            parts[-1].written.append(f" {latex}")
        else:
            parts[-1].add(latex, part.is_apart)

    for token in tokens:
        text, is_apart = token.text, token.start > end
        if text == "↑":
            continue
        end = token.end
        if token.kind == "close":
            while parts[-1].big:
                close("")
            if len(parts) > 1:
                close(text)
        elif token.kind == "open":
            parts.append(_Claim(text, is_apart, lists=parts[-1].lists))
        elif parts[-1].is_typed:
            continue
        elif text == "," and parts[-1].big:
            close("")
        elif text in _BIG:
            parts[-1].flush()
            parts.append(_Claim(big=_BIG[text], lists=True))
        elif token.kind == "sign" or text in _WORDS:
            parts[-1].sign(text, is_apart)
        elif token.kind == "name":  # as a function and, if it begins with a variable, its first argument
            first, *others = text.split(".")
            parts[-1].add(_symbol(others[-1] if others else first), is_apart)
            if others and (not first[0].isupper() or _is_letter(first)):
                parts[-1].add(_symbol(first), True)
        else:
            parts[-1].add(_text(text), is_apart)
    while len(parts) > 1:
        close("")
    return parts[0].latex("")


def _is_letter(name: str) -> bool:
    return len(name.rstrip("'₀₁₂₃₄₅₆₇₈₉ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")) == 1


def _symbol(name: str) -> str:
    if _is_letter(name):
        return name
    return rf"\{name}" if name in _FUNCTIONS or name == "sqrt" else _text(name)


def _text(name: str) -> str:
    """Write a name of several letters, a number or a literal."""
    if name.isdecimal():
        return name
    words = "".join(each if each.isalnum() or each in "'." else " " for each in name).strip()
    return rf"\text{{{words}}}" if words else r"\_"
