"""The symbol layout tree (SLT): from Presentation MathML."""
