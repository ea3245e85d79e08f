"""QQSim: a bi-encoder of questions, and its transformers."""
