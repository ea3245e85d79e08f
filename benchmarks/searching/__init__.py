"""Parts of ``benchmarks/search.py``: what is searched, how it is measured, our searches, those of others, the floor.

Each file of systems has a function that yields :class:`~searching.measure.System` one after the other, so that only
one of them is in memory at a time.
"""
