"""Answer retrieval and answer extraction: published systems that read questions and answers as text and formulas.

::

    math_tokens, math_vocabulary   a formula as tokens that a language model reads: $frac$ $1$ $2$
      latex_arguments              where the arguments of a command begin and end
    text_columns                   where the texts of topics and documents are in a ranking
    threads/                       which answers a question has; their votes, comments, tags and texts
    colbert/                       token rows of questions and answers, compared by MaxSim
    extract/                       one answer for each topic, cut from those that are ranked first
    marf/                          token rows of a text into which those of its formulas are fused
    two_step/                      similar questions first, then their answers; a ranking SVM over both similarities
"""
