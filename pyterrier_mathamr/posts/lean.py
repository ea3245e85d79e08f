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
formula (`lean_claims`); the docstring; and the words of the name. The documentation of a module is a unit, too; the
headings that its parts begin with are sections.

Commands begin a line. Names that Lean derives, such as those of ``to_additive``, are not known; an instance without a
name gets one like Lean's.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .lean_claims import claim_latex
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
    while found := _TOKEN.match(text, at):
        kind, token, start, at = found.lastgroup or "", found[0], at, found.end()
        if kind == "comment":
            at = _comment_end(text, at)
        begun, line = line, line + text.count("\n", start, at)
        if kind == "blank" or token == "/-":
            if kind == "blank" and line > begun:
                indent = at - text.rfind("\n", start, at) - 1
            elif indent >= 0:
                indent += at - start
            continue
        begins = (indent >= 0 and not depth and (token in _COMMANDS or token in _MODIFIERS or token == "@[")) or (
            indent == 0 and (token in _COMMANDS or token in _MODIFIERS or token == "@[" or token in _FIRST_COMMANDS)
        )
        if begins and indent == 0:
            depth = 0
        depth = max(depth + (kind == "open") - (kind == "close"), 0)
        indent = indent if kind == "comment" else -1
        yield LeanToken(kind, token, start, at, begun, begins)
    yield LeanToken("end", "", len(text), len(text), line, True)


def _comment_end(text: str, at: int) -> int:
    """Return where a comment ends whose first mark ends at a place; comments may be nested."""
    depth = 1
    while depth and (edge := _COMMENT_EDGE.search(text, at)):
        depth += 1 if edge[0] == "/-" else -1
        at = edge.end()
    return len(text) if depth else at


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
            if token.text == "/-!":
                self._finish(token.start)
                self._module(token.line)
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

    def _module(self, line: int) -> None:
        """Read the documentation of a module, whose first heading begins a section."""
        text = self._documentation()
        self.modules.append((line, text))
        if heading := _HEADING.search(text):
            while self._sections and self._sections[-1][0] >= len(heading[1]):
                self._sections.pop()
            self._sections.append((len(heading[1]), heading[2].strip()))

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
        """Read the signature of a declaration."""
        if keyword.text == "class" and self._token.text in ("inductive", "abbrev"):
            self._take()
        has_fields = keyword.text in _FIELDS
        head: list[LeanToken] = []
        depth = 0
        while not self._token.begins and not (depth <= 0 and self._ends(self._token, has_fields)):
            token = self._take()
            depth += (token.kind == "open") - (token.kind == "close")
            if len(head) < _MOST_TOKENS and token.kind != "comment":
                head.append(token)
        if keyword.text == "instance" and [token.text for token in head[:2]] == ["(", "priority"]:
            head = head[next((i for i, token in enumerate(head) if token.text == ")"), len(head)) + 1 :]
        name = head.pop(0).text if head and head[0].kind == "name" else ""
        if [token.text for token in head[:2]] == [".", "{"]:  # universes
            head = head[next((i for i, token in enumerate(head) if token.text == "}"), len(head)) + 1 :]
        if not name and keyword.text != "instance":
            return
        name = name or _name_of_instance(head)
        full = name.removeprefix("_root_.") if name.startswith("_root_.") else self._namespace + name
        fields = self._token.start if has_fields else -1
        self._declared = _Declaration(keyword.text, full, self._doc, keyword.line, head, _mentioned(head), fields)
        if not has_fields:
            self._finish(fields)

    def _ends(self, token: LeanToken, has_fields: bool) -> bool:
        """Return whether a token ends a signature; the bars of ``|x|`` have no blank at their inner sides."""
        if token.text == "|":
            around = self._text[token.start - 1] + self._text[token.end : token.end + 1]
            return has_fields or around.isspace()
        return token.text in (":=", "where")

    def _finish(self, end: int) -> None:
        """Make a unit of the last declaration, whose fields end at a place."""
        of, self._declared = self._declared, None
        if of is None:
            return
        variables = self._variables.written(of.mentions)
        if self._lasting >= 0:
            self._variables.cut(self._lasting)
            self._lasting = -1
        code = f"{of.kind} {of.name} {_source(of.head)}".rstrip()[:_LONGEST]
        if of.fields >= 0:
            code += "\n" + textwrap.dedent(self._text[of.fields : min(end, of.fields + _LONGEST)]).strip()
        fragment = short_fragment(" ".join(of.name.split()))
        self._fragments[fragment] += 1
        if self._fragments[fragment] > 1:
            fragment = f"{fragment}-{self._fragments[fragment]}"
        code += f"\nvariable {variables}" if variables else ""
        words = " ".join(_HUMP.sub(" ", of.name).lower().split())
        claim = claim_latex(_type(of.head)) if of.kind in _CLAIMING else ""
        claim = f"$$\n{claim}\n$$" if claim else ""
        fence = fence_around(code)
        text = "\n\n".join(filter(None, [f"{fence}\n{code}\n{fence}", claim, of.doc, words]))
        section = tuple(title for _, title in self._sections)
        self.units.append(Unit(fragment, f"`{of.name.replace('`', chr(39))}`", text, of.kind, section, of.line))


def _type(head: Sequence[LeanToken]) -> Sequence[LeanToken]:
    """Return the tokens of a signature after its colon."""
    depth = 0
    for i, token in enumerate(head):
        depth += (token.kind == "open") - (token.kind == "close")
        if token.text == ":" and not depth:
            return head[i + 1 :]
    return ()


def _name_of_instance(head: Sequence[LeanToken]) -> str:
    """Return roughly the name that Lean gives to an instance: ``instAddFoo`` for ``instance : Add Foo``."""
    names = [token.text.rpartition(".")[2] for token in _type(head) if token.kind == "name"]
    return "inst" + "".join(name for name in names if name[0].isupper() and len(name) > 1)[:60]


def lean_units(text: str, *, whole: bool) -> list[Unit]:
    """Read the declarations of a file, and first the documentation of its module, if there is any.

    Args:
        text: the file.
        whole: whether the file becomes one unit.
    """
    file = _File(text)
    file.read()
    about = "\n\n".join(doc for _, doc in file.modules)
    heading = _HEADING.match(about)
    title = heading[2].strip() if heading else ""
    about = about[heading.end() :].strip() if heading else about
    if whole:
        return [Unit("", title, "\n\n".join([about, *(unit.text for unit in file.units)]), "file")]
    return [*([Unit("", title, about, "module", (), file.modules[0][0])] if about else []), *file.units]
