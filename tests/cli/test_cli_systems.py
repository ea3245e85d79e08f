"""Commands of the other distribution: there where it is installed, elsewhere named with how to get them."""

from importlib.metadata import entry_points

import pytest
from click.testing import CliRunner

from pyterrier_mathamr._common.errors import OF_SYSTEMS
from pyterrier_mathamr.cli import group, main


@pytest.mark.parametrize("command", OF_SYSTEMS["commands"])
def test_a_command_of_the_systems_is_there_or_says_how_to_install_it(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = command.split(".")
    assert words[-1] in CliRunner().invoke(main, [*words[:-1], "--help"]).output
    assert CliRunner().invoke(main, [*words, "--help"]).exit_code == 0
    monkeypatch.setattr(group, "entry_points", lambda **_: [])
    without = CliRunner().invoke(main, [*words, "--help"])
    assert without.exit_code == 2
    assert "pip install 'pyterrier-mathamr[systems]'" in without.output
    assert CliRunner().invoke(main, ["demo", "--help"]).exit_code == 0


def test_the_table_of_the_core_names_what_the_systems_register_and_another_command_is_unknown() -> None:
    for kind, names in OF_SYSTEMS.items():
        assert {entry.name for entry in entry_points(group=f"mathamr_{kind}")} == set(names)
    assert "No such command 'experimnt'" in CliRunner().invoke(main, ["experimnt"]).output
