"""Graphs to arrays of vocabulary ids."""
