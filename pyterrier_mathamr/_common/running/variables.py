"""The earlier place of :mod:`~pyterrier_mathamr._common.running.settings`."""

from .settings import variables_of_worker as variables_of_worker
from .settings import wait_passively as wait_passively
