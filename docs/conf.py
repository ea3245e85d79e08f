"""The documentation site: the pages of the repository and those for PyTerrier's site, built by ``make docs``.

The source folder is the root of the repository, so that every link between pages is the one that works in a clone.
"""

from __future__ import annotations

import ast
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pyterrier as pt
from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.application import Sphinx

from pyterrier_mathamr import __version__

project = "pyterrier-mathamr"
release = __version__
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/results/*.md",
    "docs/*.ipynb",
    "pyterrier_mathamr/pt_docs/*.rst",
    "pyterrier_mathamr/formula/CONVENTIONS.md",
    "pyterrier_mathamr/data/**/README.md",
]
exclude_patterns = [".venv", "build"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}
nb_render_markdown_format = "gfm"
nb_execution_mode = "off"  # the tests run the tutorial; the site shows its stored outputs
myst_heading_anchors = 3
html_theme = "furo"
html_title = "pyterrier-mathamr"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = False
napoleon_use_ivar = True  # fields of a tuple would be documented twice
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries = False


class HowTo(Directive):
    """``.. how-to:: Question?``, one of PyTerrier's directives: a question and its answer, as a section."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the section."""
        section = nodes.section(ids=[nodes.make_id(self.arguments[0])])
        section += nodes.title(text=self.arguments[0])
        self.state.nested_parse(self.content, self.content_offset, section)
        return [section]


class Schematic(Directive):
    """``.. schematic::``, one of PyTerrier's directives: a drawing of the pipeline that the code ends with."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"show_code": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Return the drawing, below the code after ``# FOLD`` where ``:show_code:`` is given."""
        code = "\n".join(self.content)
        *body, last = ast.parse(code).body
        assert isinstance(last, ast.Expr)
        names: dict[str, Any] = {"pt": pt}
        exec(compile(ast.Module(body, []), "<schematic>", "exec"), names)
        pipeline = eval(compile(ast.Expression(last.value), "<schematic>", "eval"), names)
        shown = code.partition("# FOLD\n")[2] or code
        block = nodes.literal_block(shown, shown, language="python")
        drawing = nodes.raw("", pt.schematic.draw(pipeline), format="html")
        return [block, drawing] if "show_code" in self.options else [drawing]


def copy_pictures(app: Sphinx, failed: Exception | None) -> None:
    """Copy the pictures of the README, whose two themes need HTML that Sphinx passes on unread."""
    shutil.copytree(Path(app.confdir) / "images", Path(app.outdir) / "docs" / "images", dirs_exist_ok=True)


def setup(app: Sphinx) -> None:
    """Register PyTerrier's directives; drawings ask no other site where PyTerrier's own classes are documented."""
    pt.documentation.url_for_class = lambda _: None
    app.add_directive("how-to", HowTo)
    app.add_directive("schematic", Schematic)
    app.connect("build-finished", copy_pictures)
    os.environ.setdefault("MPLCONFIGDIR", tempfile.gettempdir())
