"""Helpers of the tests of posts: posts of a source or of files, a document in one form as a post, LaTeX and text."""

from pathlib import Path

from pyterrier_mathamr.posts import Document, MathPost, ReadingOptions, plain_text, post_from_html, read_posts

BOMB = "".join(rf"\def\{chr(97 + i)}{{\{chr(98 + i)}\{chr(98 + i)}}}" for i in range(24)) + rf"\def\y{{{'y' * 300}}}"
"""Definitions after which ``\\a`` would be billions of characters."""


def posts_of(source, **options):
    """Return the posts of a source, or why each cannot be read."""
    return [post for _, post in read_posts(source, ReadingOptions(**options))]


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files by their names in a folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    return folder


def units(folder: Path, files: dict[str, str], **options) -> dict[str, Document]:
    """Write files, and read the posts of their folder by docno."""
    found = posts_of(write(folder, files), **options)
    return {post.docno: post for post in found if isinstance(post, Document)}


def read(form: str, source: str, **options) -> MathPost:
    """Read a document in one form, with its title as the first block."""
    (document,) = posts_of([{"id": "d", form: source}], **{"bare_formulas": False, **options})
    return post_from_html(document.html, document.title)


def latex_of(post: MathPost | Document) -> list[str]:
    """List the LaTeX of the formulas of a post, or of the body of a document."""
    post = post_from_html(post.html) if isinstance(post, Document) else post
    return [formula.latex for formula in post.formulas]


def text_of(html: str) -> str:
    """Return the text of HTML in one line, with its formulas between dollars."""
    return " ".join(plain_text(post_from_html(html)).split())
