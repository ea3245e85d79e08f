"""The operator tree (OPT): from Content MathML."""
