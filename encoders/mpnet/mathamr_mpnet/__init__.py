"""Data only: the folder ``model`` holds the text encoder all-mpnet-base-v2 with int8 weights."""
