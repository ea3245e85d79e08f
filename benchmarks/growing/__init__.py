"""Parts of ``benchmarks/growth.py`` and ``benchmarks/rehearsal.py``: a collection of any size, and its costs.

::

    arqmath-mini ──templates──▶ posts and formulas with slots ──drawing──▶ new words and symbols ──release──▶ a folder
    folder ──parts──▶ stores and indexes, each built and queried in a separate process ──running──▶ results.jsonl
    results ──report──▶ exponents, tables, CSV ──figure──▶ SVG
"""
