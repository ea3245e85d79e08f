"""Weights of linear scores, learned by Newton's method."""
