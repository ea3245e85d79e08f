"""Explanations of scores: what each part of a query contributes to the score of a document.

::

    explanation   Part, Explanation: the parts, whose contributions sum to the score
    asking        the query and the document that an explanation is asked for
    pipelines     explanations of pipelines, by their last stage that scores
    terminal      an explanation as a table of text
    notebook      an explanation as HTML;  colors: the two texts, each part and what it met in one color
"""

from .explanation import Explanation, Part, Reading

__all__ = ["Explanation", "Part", "Reading"]
