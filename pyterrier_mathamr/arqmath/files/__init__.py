"""Readers and writers of the official files, each a generator of named tuples or a frame.

rows      bytes to rows of XML and lines of text, gzipped or not, in constant memory
rules     what is tolerated in a bad row, reported as a warning
│
├── posts, topics, qrels, pairs (and links)       the release
└── runs, answers                                 submissions, read and written
"""
