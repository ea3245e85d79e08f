"""How much a worker gets at once, how long it may take, and how often it is given another chance."""

from __future__ import annotations

from dataclasses import dataclass

from pyterrier_mathamr._common.errors import ConfigError


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Limits of each worker.

    Attributes:
        batch_tokens: tokens in a batch, padding included; a longer text is a batch of its own.
        load_seconds: until a parser has loaded its weights, a download included.
        batch_seconds: for a batch of any size, on top of which
        token_seconds: for each of its tokens.
        restarts: how often in a row a worker is started again without having parsed anything.

    Raises:
        ConfigError: a limit is not positive, ``restarts`` is negative.
    """

    batch_tokens: int = 4000
    load_seconds: float = 1800.0
    batch_seconds: float = 120.0
    token_seconds: float = 0.5
    restarts: int = 5

    def __post_init__(self) -> None:
        for name in ("batch_tokens", "load_seconds", "batch_seconds"):
            if getattr(self, name) <= 0:
                raise ConfigError(name, getattr(self, name), "a positive number")
        for name in ("token_seconds", "restarts"):
            if getattr(self, name) < 0:
                raise ConfigError(name, getattr(self, name), "a number from 0 on")

    def seconds(self, tokens: int) -> float:
        """Time for a batch of so many tokens."""
        return self.batch_seconds + self.token_seconds * tokens
