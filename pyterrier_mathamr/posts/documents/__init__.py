r"""A person's own posts, in whatever form they are, as the records that indexes are built from.

::

    dictionaries, a frame          docno | id,  title?,  html | body | text | contents | markdown | latex
    posts.jsonl, posts.jsonl.gz    one such dictionary a line
    a folder                       notes/limits.md, a.tex, b.html, c.txt: the path is the docno, without its ending
        ──▶  Document(docno, title, html)      formulas found once, each with an id: ``notes/limits#0``

    sources ──records──▶ document ──▶ accepting, which names the posts that cannot be read
    beir: folders in the layout of BEIR

Every index that is built of them reads these records, so that all of them agree on what a formula is and on its id.
"""
