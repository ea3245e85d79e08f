"""A Sphinx extension: the built site can be searched by words and formulas, as with ``mathamr site``.

In ``conf.py``::

    extensions = ["pyterrier_mathamr.sphinx"]
    html_sidebars = {"**": [..., "mathamr.html"]}  # a box on each page
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

from pyterrier_mathamr._common.feedback import counted
from pyterrier_mathamr._version import __version__

_FOLDER = "mathamr"


def _write_search(app: Sphinx, failed: Exception | None) -> None:
    """Write the search once all pages are written."""
    from pyterrier_mathamr.engine.site import write_site

    if failed is not None or app.builder.format != "html":
        return
    report = write_site(app.outdir, Path(app.outdir) / _FOLDER, title=app.config.html_title)
    covered = f"{counted(report.sections, 'section')} and {counted(report.formulas, 'formula')}"
    logging.getLogger(__name__).info(f"{covered} can be searched; {len(report.unread):,} formulas cannot be read")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension; ``mathamr.html`` is a template for ``html_sidebars``."""
    app.connect("build-finished", _write_search)
    app.config.templates_path.append(str(Path(__file__).parent / "engine" / "site" / "templates"))
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
