"""Formulas: all systems of Task 2, known items, and studies of In+Out models."""
