// The box: a live preview, and buttons for those who do not write LaTeX. "|" is where the cursor goes.

import { $, ask, element } from "./dom.js";

const form = $("form"), box = $("query"), preview = $("preview"), symbols = $("symbols");

const SYMBOLS = [
  ["√", "\\sqrt{|}"], ["a/b", "\\frac{|}{}"], ["xⁿ", "^{|}"], ["xₙ", "_{|}"], ["∑", "\\sum_{|}^{}"], ["∫", "\\int_{|}^{}"],
  ["∏", "\\prod_{|}^{}"], ["lim", "\\lim_{|}"], ["(ⁿₖ)", "\\binom{|}{}"], ["∞", "\\infty"], ["π", "\\pi"], ["α", "\\alpha"],
  ["ε", "\\varepsilon"], ["±", "\\pm"], ["≤", "\\le"], ["≥", "\\ge"], ["≠", "\\ne"], ["∈", "\\in"],
  ["⊂", "\\subset"], ["→", "\\to"], ["⇒", "\\Rightarrow"], ["∀", "\\forall"], ["∃", "\\exists"], ["∂", "\\partial"],
  ["ℝ", "\\mathbb{R}"], ["$ $", "$|$"],
];

function insert(latex) {
  const { selectionStart: start, selectionEnd: end, value } = box;
  const inside = value.slice(0, start).split("$").length % 2 === 0 || form.elements.mode.value === "formulas";
  const letter = latex.includes("|") ? latex : `${latex} |`; // a blank, or \pi and n would be \pin
  const text = inside || latex.startsWith("$") ? letter : `$${letter}$`;
  const [before, after = ""] = text.split("|");
  const selected = value.slice(start, end);
  box.setRangeText(before + selected + after, start, end);
  box.selectionStart = box.selectionEnd = start + before.length + selected.length;
  box.focus();
  box.dispatchEvent(new Event("input"));
}

const buttons = SYMBOLS.map(([name, latex], i) => {
  const plain = latex.replaceAll("|", "");
  return element("button", { type: "button", title: plain, "aria-label": plain, tabindex: i ? "-1" : "0", onclick: () => insert(latex) }, name);
});
symbols.append(...buttons);

symbols.addEventListener("keydown", (event) => {
  const at = buttons.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const next = buttons.at(to % buttons.length);
  buttons[at].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});

let timer = 0;
export function showPreview(delay = 150) {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const asked = { q: box.value, mode: form.elements.mode.value };
    const answer = asked.q.trim() ? await ask("preview", asked).catch(() => null) : { html: "" };
    if (answer && asked.q === box.value && asked.mode === form.elements.mode.value) preview.innerHTML = answer.html;
  }, delay);
}

export function dropPreview() {
  clearTimeout(timer);
}

box.addEventListener("input", () => showPreview());
for (const radio of form.elements.mode) radio.addEventListener("change", () => showPreview(0));

box.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit();
  }
});
