"""The documentation site: the pages of the repository and those for PyTerrier's site, built by ``make docs``.

The source folder is the root of the repository, so that every link between pages is the one that works in a clone.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import tempfile
from html import escape
from pathlib import Path
from typing import Any, ClassVar

import pyterrier as pt
from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.application import Sphinx

from pyterrier_mathamr import __version__

SOURCE = "https://github.com/pyterrier-mathamr/pyterrier-mathamr/"
project = "pyterrier-mathamr"
release = __version__
root_doc = "docs/index"
include_patterns = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/*.md",
    "docs/api/*.rst",
    "docs/archive/*.md",
    "docs/tutorial/*.ipynb",
    "pyterrier_mathamr/pt_docs/*.rst",
    "pyterrier_mathamr/formula/CONVENTIONS.md",
    "pyterrier_mathamr/data/**/README.md",
    "systems/mathamr_systems/data/**/README.md",
]
exclude_patterns = [".venv", "build"]
extensions = [
    "myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "pyterrier_mathamr.sphinx"
]  # fmt: skip
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}
nb_render_markdown_format = "gfm"
nb_execution_mode = "off"  # the tests run the notebooks; the site shows their stored outputs
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"pyterrier-mathamr {release}"
html_theme_options = {"source_repository": SOURCE, "source_branch": "main", "source_directory": ""}
html_sidebars = {
    "**": [
        *("sidebar/brand.html", "sidebar/search.html", "mathamr.html"),
        *("sidebar/scroll-start.html", "sidebar/navigation.html", "sidebar/scroll-end.html"),
    ]
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "../pyterrier_mathamr/engine/page/static/icon.svg"
html_show_copyright = False
napoleon_use_ivar = True  # fields of a tuple would be documented twice
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries = False


API = "pyterrier_mathamr/pt_docs/api"
_OBJECT = re.compile(r"^\.\. auto(\w+):: (\S+)\n((?:    :.*\n)*)\n*", re.MULTILINE)
_OBJECTS = re.compile(rf"(?:{_OBJECT.pattern})+", re.MULTILINE)


def objects_of(text: str) -> dict[str, str]:
    """Return of each documented object its name and the directive that documents it; of a module each member."""
    found = {}
    for kind, name, options in _OBJECT.findall(text):
        if kind != "module":
            found[name] = f".. auto{kind}:: {name}\n{options}"
            continue
        module, members = importlib.import_module(name), options.partition(":members:")[2].partition("\n")[0]
        for member in map(str.strip, members.split(",")):
            value = getattr(module, member)
            kind = "class" if isinstance(value, type) else "function" if callable(value) else "data"
            found[f"{name}.{member}"] = f".. auto{kind}:: {name}.{member}\n" + "    :members:\n" * (kind == "class")
    return found


def write_api_pages(app: Sphinx) -> None:
    """Give each class and function a page of its own; PyTerrier's site has them on one page."""
    folder = Path(app.srcdir) / "docs" / "api"
    folder.mkdir(exist_ok=True)
    objects = objects_of((Path(app.srcdir) / f"{API}.rst").read_text(encoding="utf-8"))
    for page in folder.glob("*.rst"):
        if page.stem not in objects:  # of an earlier build
            page.unlink()
    for name, directive in objects.items():
        title, page = name.rpartition(".")[2], folder / f"{name}.rst"
        text = f"{title}\n{'=' * len(title)}\n\n{directive}"
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def list_api_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """Replace the documentation of objects by a list of their pages."""
    if page == API:
        lines = "\n\n.. toctree::\n    :maxdepth: 1\n\n"
        source[0] = _OBJECTS.sub(
            lambda found: lines + "".join(f"    /docs/api/{name}\n" for name in objects_of(found[0])) + "\n", source[0]
        )


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
        drawing = nodes.raw("", f'<div class="drawing">{pt.schematic.draw(pipeline)}</div>', format="html")
        return [block, drawing] if "show_code" in self.options else [drawing]


def link_within_the_site(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Link to a page of this site where a page that PyTerrier's site shows, too, links to the repository."""
    for link in tree.findall(nodes.reference):
        path, _, place = link.get("refuri", "").removeprefix(f"{SOURCE}blob/main/").partition("#")
        name = path.rpartition(".")[0]
        if name in app.env.found_docs:
            link["refuri"] = app.builder.get_relative_uri(page, name) + (place and f"#{place}")


def describe(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """Describe a page for search engines and previews by its first paragraph."""
    first = next(iter(tree.findall(nodes.paragraph)), None) if tree else None
    if first is not None:
        text = escape(" ".join(first.astext().split())[:300])
        context["metatags"] += (
            f'<meta name="description" content="{text}"><meta property="og:description" content="{text}">'
        )


def open_at_the_manual(app: Sphinx, failed: Exception | None) -> None:
    """Lead from the root of the site to its first page, which is in ``docs``."""
    page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={root_doc}.html">'
    (Path(app.outdir) / "index.html").write_text(f'{page}<a href="{root_doc}.html">{project}</a>\n', encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register PyTerrier's directives; drawings ask no other site where PyTerrier's own classes are documented."""
    pt.documentation.url_for_class = lambda _: None
    app.add_directive("schematic", Schematic)
    app.connect("builder-inited", write_api_pages)
    app.connect("source-read", list_api_pages)
    app.connect("doctree-resolved", link_within_the_site)
    app.connect("html-page-context", describe)
    app.connect("build-finished", open_at_the_manual)
    os.environ.setdefault("MPLCONFIGDIR", tempfile.gettempdir())
