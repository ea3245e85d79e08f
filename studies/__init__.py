"""The research behind the figures: studies of models and systems, not part of the installed package."""
