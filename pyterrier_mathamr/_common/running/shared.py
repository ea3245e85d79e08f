"""The earlier place of :mod:`~pyterrier_mathamr._common.running.settings`."""

from .settings import shared as shared
