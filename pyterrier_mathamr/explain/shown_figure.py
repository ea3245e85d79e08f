"""A figure of matplotlib that notebooks show by themselves; importing this module loads matplotlib."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A figure that is shown without pyplot, which a plain ``Figure`` is not."""

    def _repr_png_(self) -> bytes:
        written = BytesIO()
        self.savefig(written, format="png", bbox_inches="tight")
        return written.getvalue()
