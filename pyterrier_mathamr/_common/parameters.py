"""Objects that are their parameters: equality, hash, a `repr` that rebuilds, and options that are checked.

PyTerrier recognizes equal stages of two pipelines by ``==``, reads parameters as attributes of the same name, and sets
them as attributes (``pt.GridScan``, ``pt.inspect.transformer_apply_attributes``)::

    class Searcher(ByParameters):
        checks = {"num_results": COUNT, "search": one_of("exact", "approximate")}

    Searcher(num_results=3.5)                # ConfigError: num_results=3.5 is not accepted; give an integer, 1 or more.
    searcher.num_results = 0                 # ConfigError, too
"""

from __future__ import annotations

import inspect
import math
import numbers
import operator
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Concatenate, NamedTuple, ParamSpec, TypeVar, cast

from .errors import ConfigError

P = ParamSpec("P")
T = TypeVar("T")


def method(kind: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return the method of an index that constructs a transformer over it, or calls a function; help shows it so."""
    return cast("Callable[Concatenate[Any, P], T]", _Constructing(kind))


class _Constructing:
    """In the body of a class, becomes a method with the name that it is assigned to."""

    def __init__(self, kind: Callable[..., Any]) -> None:
        self.kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        kind = self.kind

        def construct(self: Any, /, *args: Any, **options: Any) -> Any:
            return kind(self, *args, **options)

        signature = inspect.signature(kind)
        index, *options = signature.parameters.values()
        parameters = [index.replace(name="self", annotation=index.empty), *options]
        returned = kind.__name__ if inspect.isclass(kind) else signature.return_annotation
        signature = inspect.Signature(parameters, return_annotation=returned)
        construct.__signature__ = signature  # type: ignore[attr-defined]
        construct.__name__, construct.__qualname__ = name, f"{owner.__qualname__}.{name}"
        # without the index among its arguments, and without the heading of the arguments if it was the only one
        entry = rf"^    {index.name}: .*\n(?:     .*\n)*"
        text = re.sub(entry, "", (inspect.getdoc(kind) or "") + "\n", flags=re.MULTILINE)
        construct.__doc__ = re.sub(r"^Args:\n\s*(?=^\S|\Z)", "", text, flags=re.MULTILINE).rstrip()
        construct.__module__ = owner.__module__
        setattr(owner, name, construct)


class ConstructorSignature:
    """The ``__signature__`` of a class is that of its ``__init__``."""

    def __get__(self, instance: object | None, owner: type) -> inspect.Signature:
        """Return the signature of a class; an instance, which may be called, has no signature here."""
        if instance is not None:
            raise AttributeError("__signature__")
        signature = inspect.signature(owner.__init__)  # type: ignore[misc]
        parameters = list(signature.parameters.values())[1:]
        return signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)


class Rule(NamedTuple):
    """The allowed values of an option: the words of a message and the test."""

    allowed: str
    holds: Callable[[Any], bool]

    def check(self, option: str, value: object) -> None:
        if not self.holds(value):
            raise ConfigError(option, value, self.allowed)

    def or_none(self) -> Rule:
        return Rule(f"{self.allowed}, or None", lambda value: value is None or self.holds(value))


def one_of(*values: object) -> Rule:
    return Rule(" or ".join(map(repr, values)), lambda value: any(value is one or value == one for one in values))


def at_least(least: int) -> Rule:
    """Return the rule of an integer (Python's or numpy's, no bool) that is not below ``least``."""
    return Rule(f"an integer, {least} or more", lambda value: _is_integer(value) and value >= least)


def between(least: float, greatest: float = math.inf) -> Rule:
    allowed = f"a number, {least} or more" if greatest == math.inf else f"a number between {least} and {greatest}"
    return Rule(allowed, lambda value: _is_number(value) and least <= value <= greatest)


def list_of(rule: Rule) -> Rule:
    allowed = f"a list, each of it {rule.allowed}"
    return Rule(allowed, lambda value: isinstance(value, (list, tuple)) and all(map(rule.holds, value)))


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


def _is_integer(value: object) -> bool:
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return not isinstance(value, bool)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool) or (str(getattr(value, "dtype", "")) == "bool" and getattr(value, "ndim", 1) == 0)


COUNT = at_least(1)
"""A number of results, of documents in a batch, of processes."""

FRACTION = between(0, 1)
"""A weight of two sides."""

POSITIVE = Rule("a number above 0", lambda value: _is_number(value) and value > 0)
"""A rate, a factor, a tolerance."""

BELOW_1 = Rule("a number from 0 and below 1", lambda value: _is_number(value) and 0 <= value < 1)
"""A probability that must not be certain."""

FLAG = Rule("True or False", _is_flag)
"""Whether something is done: a boolean (Python's or numpy's), and not 1 or 0, which equal them."""


class ByParameters:
    """Gives a class equality, hash and `repr` by the parameters of its ``__init__``."""

    checks: ClassVar[Mapping[str, Rule]] = {}
    """Parameter to the rule of its values, applied whenever ``x`` or ``_x`` is set."""
    __signature__ = ConstructorSignature()

    def __setattr__(self, name: str, value: object) -> None:
        option = name.removeprefix("_")
        if option in self.checks:
            self.checks[option].check(option, value)
        super().__setattr__(name, value)

    def parameters(self) -> dict[str, Any]:
        """Return the values of the constructor's parameters, by name, in its order."""
        kept = vars(self)  # not getattr: a method may have the name of a parameter, with or without the underscore
        values: dict[str, Any] = {}
        for name, parameter in list(inspect.signature(type(self).__init__).parameters.items())[1:]:
            value = kept[name] if name in kept else kept[f"_{name}"]
            values.update(value if parameter.kind is parameter.VAR_KEYWORD else {name: value})
        return values

    def __repr__(self) -> str:
        signature = inspect.signature(type(self).__init__).parameters
        shown: list[str] = []
        for name, value in self.parameters().items():
            if name in signature and signature[name].kind is inspect.Parameter.VAR_POSITIONAL:
                shown += map(repr, value)
            elif name not in signature or value != signature[name].default:
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.parameters() == other.parameters()

    def __hash__(self) -> int:
        return hash((type(self), *map(_hash, self.parameters().values())))


def _hash(value: object) -> int:
    """Hash a parameter so that equal values have equal hashes; unhashable values share one."""
    if isinstance(value, (list, tuple)):
        return hash((type(value), *map(_hash, value)))
    try:
        return hash(value)
    except TypeError:
        return 0


def artifact_name(path: str | Path) -> str:
    """Name what lies in a folder or file: ``sample`` for ``results/sample.bm25``, but ``v1.2`` for ``v1.2``."""
    name = Path(path).name or Path(path).absolute().name
    return re.sub(r"(?<=.)\.[a-z]\w*$", "", name)


class ByPath:
    """Gives a class equality, hash and a `repr` that rebuilds, by its ``path``."""

    path: Path
    __signature__ = ConstructorSignature()

    @property
    def nickname(self) -> str:
        """What the names of transformers call it."""
        return artifact_name(self.path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, ByPath) and self.path.absolute() == other.path.absolute()

    def __hash__(self) -> int:
        return hash((type(self), self.path.absolute()))
