"""Private interfaces of other libraries: each still does what the package needs of it.

They were tried with the versions below. Where another one fails, look at ``_common/private.py``, or at the module that
is named.
"""

import atexit
import inspect

import pytest
import torch

from pyterrier_mathamr._common import private

TRIED = {"torch": "2.13", "uvicorn": "0.54", "mcp": "2.3", "CPython": "3.11"}


def test_torch_multiplies_int8_matrices() -> None:
    left = torch.arange(-64, 64, dtype=torch.int8).view(32, 4).repeat(1, 4)
    out = torch.empty(32, 32, dtype=torch.int32)
    wanted = left.int() @ left.int().T
    assert torch.equal(private.int8_product(left, left.T), wanted), TRIED["torch"]
    assert private.int8_product(left, left.T, out=out) is out
    assert torch.equal(out, wanted)


def test_torch_counts_the_changes_of_a_tensor() -> None:
    tensor = torch.zeros(1)  # model/rgcn.py
    before = tensor._version
    tensor.add_(1)
    assert tensor._version > before, TRIED["torch"]


def test_exit_functions_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(atexit._run_exitfuncs), TRIED["CPython"]
    calls: list[str] = []
    monkeypatch.setattr(atexit, "_run_exitfuncs", lambda: calls.append("run"))
    private.run_exit_functions()
    assert calls == ["run"]


def test_a_connection_of_uvicorn_has_what_is_overridden_and_read() -> None:
    h11 = pytest.importorskip("uvicorn.protocols.http.h11_impl", reason="the extra serve is not installed")
    overridden = ("connection_made", "data_received", "on_response_complete", "connection_lost")  # page/connections.py
    assert [name for name in overridden if not hasattr(h11.H11Protocol, name)] == [], TRIED["uvicorn"]
    source = inspect.getsource(h11)
    read = ("self.cycle", "self.connections", "self.scope", "self.transport", "self.more_body", "self.response_started")
    assert [name for name in read if f"{name}" not in source] == [], TRIED["uvicorn"]


def test_a_server_for_assistants_has_one_below() -> None:
    server = pytest.importorskip("mcp.server", reason="the extra mcp is not installed").MCPServer("name")
    assert callable(private.lowlevel_server(server).run), TRIED["mcp"]
