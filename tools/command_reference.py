"""Write docs/commands.md, the reference of the command line, from the help of each command.

::

    python tools/command_reference.py
"""

from __future__ import annotations

from pathlib import Path

import click

from pyterrier_mathamr.cli import main

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
HEAD = """# Commands

*What does each command do, and which options has it?* `mathamr COMMAND --help` prints the same.
"""


def reference() -> str:
    """Return the page."""
    context = click.Context(main, info_name="mathamr", terminal_width=110, **main.context_settings)
    return "\n".join([HEAD, *(_section(name, main, context) for name in main.list_commands(context))])


def _section(name: str, group: click.Group, parent: click.Context) -> str:
    """Write the help of a command, and of the commands of a group."""
    command = group.get_command(parent, name)
    assert command is not None
    context = click.Context(command, info_name=name, parent=parent, max_content_width=110, terminal_width=110)
    help_text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    section = f"{'#' * (2 if parent.parent is None else 3)} {name}\n\n```text\n{help_text}\n```\n"
    inner = command.list_commands(context) if isinstance(command, click.Group) else []
    return "\n".join([section, *(_section(each, command, context) for each in inner)])  # type: ignore[arg-type]


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
