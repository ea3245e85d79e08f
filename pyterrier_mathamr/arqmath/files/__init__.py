"""Readers and writers of the official files."""
