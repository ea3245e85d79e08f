"""QASim: a language model that reads a question and an answer, its losses and its transformer."""
