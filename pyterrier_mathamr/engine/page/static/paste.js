// Pasted content becomes text with LaTeX: formulas of Wikipedia and other pages, MathML, and Unicode.

import { ask } from "./dom.js";
import { withCommands } from "./commands.js";

const FORMULA = "math, .katex, mjx-container, img.mwe-math-fallback-image-inline, img.mwe-math-fallback-image-display, img[alt*='\\\\displaystyle']";
const UNICODE = /[\u00b2\u00b3\u00b9\u0370-\u03ff\u2070-\u209f\u2190-\u22ff\u27e6-\u2aff\u{1d400}-\u{1d7ff}]/u;
const LONGEST = 4000;

const escaped = (text) => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt()};`);

function latexOf(formula) {
  const source = formula.querySelector("annotation[encoding*='tex' i]")?.textContent || formula.getAttribute("alttext") || formula.getAttribute("alt") || "";
  const latex = source.trim().replace(/^\{\\displaystyle\s*([^]*)\}$/, "$1").replace(/^\\displaystyle\s*/, "");
  return latex.trim();
}

// The text of a piece of a page, formulas between dollars; null for one without formulas.
function textOf(html) {
  const page = new DOMParser().parseFromString(html, "text/html"); // runs nothing and loads nothing
  for (const extra of page.querySelectorAll("script, style, .katex-html, .mwe-math-element img")) {
    if (extra.localName !== "img" || extra.parentNode.querySelector("math")) extra.remove();
  }
  let found = false;
  for (const formula of page.querySelectorAll(FORMULA)) {
    if (!page.contains(formula)) continue;
    const math = formula.localName === "math" ? formula : formula.querySelector("math"), latex = latexOf(formula);
    if (!latex && !math) continue;
    found = true;
    formula.replaceWith(latex ? `$${latex}$` : `\ue000${math.outerHTML}\ue001`);
  }
  const text = page.body.textContent.replace(/\s+/g, " ").trim();
  return found ? text : null;
}

// Resolves to the text to insert, or null where the browser's own way is right.
export async function pasted(clipboard) {
  const plain = clipboard.getData("text/plain"), html = clipboard.getData("text/html");
  const text = (/<math[\s>]/.test(plain) && textOf(plain)) || (html && textOf(html));
  if (text && !text.includes("\ue000")) return text;
  const asked = text ? escaped(text).replace(/\ue000(.*?)\ue001/gs, (_, math) => math.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))) : plain;
  if (!text && (!UNICODE.test(plain) || /[$\\]/.test(plain))) return null;
  if (asked.length > LONGEST) return text ? null : plain;
  const answer = await ask("preview", { q: asked }).catch(() => null);
  return answer && answer.latex.replace(/\$[^$]*\$/g, withCommands);
}

export const mayChange = (clipboard) => clipboard.types.includes("text/html") || /<math[\s>]/.test(clipboard.getData("text/plain")) || UNICODE.test(clipboard.getData("text/plain"));
