"""Reading LaTeX formulas: source → MathML of ``math-core`` → atoms → rows → both trees."""
