"""What the sparse indexes share.

::

    rows of a frame or a corpus ──reading──▶ posts ──(each system: terms)──▶ postings, texts ──index──▶ one part
                                                                                 │
                                    queries ──(each system: scores)──▶ ranking ◀─┘
"""
