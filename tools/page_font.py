"""Adapt STIX Two Math to how browsers set MathML: ``python tools/page_font.py FONT.woff2``.

Root signs: Chromium reserves the width of the widest variant for every root, which leaves a hole behind a root of one
line. All variants get the width of the smallest one.

Scripts: MathML measures the height of every base, where TeX takes letters to be equally high, so that the exponents of
``a`` and ``b`` differ. With these distances, only bases that are larger than letters and parentheses move a script.
"""

import sys

from fontTools.ttLib import TTFont
from fontTools.ttLib.tables.ttProgram import Program

ROOT = 0x221A
SUPERSCRIPT_DROP, SUBSCRIPT_DROP = 450, 0  # thousandths of an em

[path] = sys.argv[1:]
font = TTFont(path)
glyphs, widths, math = font["glyf"], font["hmtx"], font["MATH"].table
smallest = font.getBestCmap()[ROOT]
variants = math.MathVariants
sign = variants.VertGlyphConstruction[variants.VertGlyphCoverage.glyphs.index(smallest)]
names = {each.VariantGlyph for each in sign.MathGlyphVariantRecord}
names |= {each.glyph for each in sign.GlyphAssembly.PartRecords}
width = widths[smallest][0]
for name in names:
    glyph, factor = glyphs[name], width / widths[name][0]
    if factor < 1:
        glyph.coordinates.scale((factor, 1))
        glyph.coordinates.toInt()
        glyph.program = Program()
        glyph.program.fromBytecode(b"")
        glyph.recalcBounds(glyphs)
        widths[name] = width, glyph.xMin
math.MathConstants.SuperscriptBaselineDropMax.Value = SUPERSCRIPT_DROP
math.MathConstants.SubscriptBaselineDropMin.Value = SUBSCRIPT_DROP
font.save(path)
