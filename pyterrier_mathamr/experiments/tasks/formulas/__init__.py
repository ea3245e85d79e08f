"""The systems of Task 2, what they are made of, and their search with the topics of years and with known items."""
