"""Parts of ``benchmarks/search.py``: corpora, measurement, our searches, other libraries' searches, the floor.

Each file of systems has a generator of :class:`~searching.measure.System`, so that one of them is in memory at a time.
"""
