"""Collections beyond ARQMath: any in BEIR's layout, and the pairs from outside, each kind of text left out in turn.

::

    texts ─┬─▶ beir_run     a folder with judgments
           └─▶ domains      files of pairs: a file's questions look for their answers

    mteb_search     our pipelines as search models of MTEB
"""
