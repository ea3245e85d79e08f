"""Helpers of the tests of posts: posts of a source, a document in one form as a post, the LaTeX of its formulas."""

from pyterrier_mathamr.posts import MathPost, ReadingOptions, post_from_html, read_posts


def posts_of(source, **options):
    """Return the posts of a source, or why each cannot be read."""
    return [post for _, post in read_posts(source, ReadingOptions(**options))]


def read(form: str, source: str, **options) -> MathPost:
    """Read a document in one form, with its title as the first block."""
    (document,) = posts_of([{"id": "d", form: source}], **{"bare_formulas": False, **options})
    return post_from_html(document.html, document.title)


def latex_of(post: MathPost) -> list[str]:
    """List the LaTeX of a post's formulas."""
    return [formula.latex for formula in post.formulas]
