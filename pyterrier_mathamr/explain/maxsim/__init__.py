"""The picture of a score: ``comparison`` takes it apart, ``panels`` has the two texts, ``table`` the numbers."""

from __future__ import annotations
