"""Work that never ends on one node."""

import time

from waiting import until


def hang_on(node, folder):
    """Never return on one node, and elsewhere not before something has begun there."""
    import ray

    begun = folder / "begun"
    if ray.get_runtime_context().get_node_id() == node:
        begun.touch()
        time.sleep(600)
    assert until(begun.exists)
