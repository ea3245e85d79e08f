"""Private interfaces of other libraries: each still does what the package needs of it.

They were tried with the versions below. Where another one fails, look at ``_common/private.py``.
"""

import atexit

import pytest
import torch

from pyterrier_mathamr._common import private

TRIED = {"torch": "2.13", "mcp": "2.3", "CPython": "3.11"}


def test_torch_multiplies_int8_matrices() -> None:
    left = torch.arange(-64, 64, dtype=torch.int8).view(32, 4).repeat(1, 4)
    out = torch.empty(32, 32, dtype=torch.int32)
    wanted = left.int() @ left.int().T
    assert torch.equal(private.int8_product(left, left.T), wanted), TRIED["torch"]
    assert private.int8_product(left, left.T, out=out) is out
    assert torch.equal(out, wanted)


def test_exit_functions_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(atexit._run_exitfuncs), TRIED["CPython"]
    calls: list[str] = []
    monkeypatch.setattr(atexit, "_run_exitfuncs", lambda: calls.append("run"))
    private.run_exit_functions()
    assert calls == ["run"]


def test_a_server_for_assistants_has_one_below() -> None:
    server = pytest.importorskip("mcp.server", reason="the extra mcp is not installed").MCPServer("name")
    assert callable(private.lowlevel_server(server).run), TRIED["mcp"]
