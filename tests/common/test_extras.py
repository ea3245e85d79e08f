"""An optional package: absent, broken and whole are three things."""

import pickle

import pytest

from pyterrier_mathamr._common.errors import MissingExtraError, require


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, code):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(code)

    return write


def test_a_package_that_is_there_is_given(package):
    package("optional_whole", "answer = 42")
    assert require("optional_whole", "text").answer == 42


def test_a_package_that_is_absent_is_named_with_the_extra_that_installs_it():
    for module in ("optional_absent", "optional_absent.part"):
        with pytest.raises(MissingExtraError, match=r"optional_absent is not installed.*\[text\]"):
            require(module, "text")


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("lacks_another", "import optional_absent", "No module named 'optional_absent'"),
        ("lacks_a_name", "from json import no_such", "cannot import name 'no_such'"),
        ("fails", "raise RuntimeError('built for\\nanother torch')", "RuntimeError: built for"),
    ],
)
def test_a_package_that_is_there_and_fails_is_not_called_absent(package, name, code, reason):
    package(name, code)
    with pytest.raises(MissingExtraError, match="is installed but cannot be imported") as raised:
        require(name, "text")
    assert reason in str(raised.value)
    assert raised.value.__cause__ is not None
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_a_part_that_a_package_lacks_does_not_make_it_absent(package):
    package("optional_partial", "")
    with pytest.raises(MissingExtraError, match=r"optional_partial\.part"):
        require("optional_partial.part", "text")
