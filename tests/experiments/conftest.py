"""What all runs of experiments share."""

from collections.abc import Iterator
from functools import partial

import pytest

from mathamr_systems.experiments import task1, task2
from mathamr_systems.experiments.measuring import time_queries


@pytest.fixture(scope="module", autouse=True)
def few_timed() -> Iterator[None]:
    """Time two queries of each system."""
    with pytest.MonkeyPatch.context() as patch:
        for task in (task1, task2):
            patch.setattr(task, "time_queries", partial(time_queries, most=2))
        yield
