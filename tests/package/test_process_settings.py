"""Settings of the whole process are changed in few places, each safe while several threads compute."""

import ast
from collections.abc import Iterator
from pathlib import Path

import mathamr_systems
import pyterrier_mathamr

PACKAGES = Path(pyterrier_mathamr.__file__).parent, Path(mathamr_systems.__file__).parent
CHANGES = {
    "catch_warnings",
    "disable",
    "disable_progress_bar",
    "fork_rng",
    "rc_context",
    "set_default_dtype",
    "set_float32_matmul_precision",
    "set_num_threads",
    "setLevel",
    "setlocale",
    "setrecursionlimit",
    "use_deterministic_algorithms",
}
SAFE = {
    "_common/feedback.py": "one thread at a time",
    "_common/running/resources.py": "one thread at a time, or each thread has its own",
    "cli/group.py": "the whole program",
    "model/loop.py": "a whole training",
}


def changes(tree: ast.AST, inside_shared: bool = False) -> Iterator[str]:
    """Yield the names of calls that change a setting outside of a function that `shared` guards."""
    for node in ast.iter_child_nodes(tree):
        decorators = [ast.unparse(each) for each in getattr(node, "decorator_list", ())]
        guarded = inside_shared or "shared" in decorators
        name = getattr(node.func, "attr", "") if isinstance(node, ast.Call) else ""
        if name in CHANGES and not guarded:
            yield name
        yield from changes(node, guarded)


def test_a_setting_of_the_process_is_changed_only_where_several_threads_are_safe() -> None:
    found = {}
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            if names := list(changes(ast.parse(path.read_text(encoding="utf-8")))):
                found[path.relative_to(package).as_posix()] = names
    assert {path: names for path, names in found.items() if path not in SAFE} == {}
    assert set(SAFE) <= set(found)
