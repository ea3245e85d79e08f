"""Private interfaces of other libraries, each behind one function.

The versions that they were tried with are in tests/package/test_private_interfaces.py, which fails where one is gone.
Two more need a class or a table of their own: uvicorn's connections (engine/page/connections.py) and the products of
oneDNN (model/bert.py).
"""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def int8_product(left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """Multiply int8 matrices to int32, for which torch has no public function."""
    import torch

    return torch._int_mm(left, right) if out is None else torch._int_mm(left, right, out=out)


def run_exit_functions() -> None:
    """Run the registered exit functions, for a process that ends without Python's own shutdown."""
    atexit._run_exitfuncs()


def lowlevel_server(server: Any) -> Any:
    """Return the server inside an ``MCPServer``, which can answer lines that are not messages."""
    return server._lowlevel_server
