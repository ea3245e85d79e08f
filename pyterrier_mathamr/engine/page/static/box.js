// The box: it grows, shows the query as it is read, suggests commands, and has buttons for those who do not write LaTeX.

import { GROUPS, commandsFor, isCommand } from "./commands.js";
import { $, ask, element } from "./dom.js";
import { mayChange, pasted } from "./paste.js";
import { fit } from "./results.js";

const form = $("form"), box = $("query"), preview = $("preview"), symbols = $("symbols"), list = $("commands"), all = $("all");

function write(text, start = box.selectionStart, end = box.selectionEnd) {
  box.focus();
  box.setSelectionRange(start, end);
  if (!document.execCommand("insertText", false, text)) box.setRangeText(text, start, end, "end"); // the former can be undone
  box.dispatchEvent(new Event("input"));
}

function insert(latex, from = box.selectionStart) {
  const { selectionEnd: end, value } = box;
  const inside = value.slice(0, from).split("$").length % 2 === 0 || from !== box.selectionStart;
  const letter = latex.includes("|") || !/[a-z]$/i.test(latex) ? latex : `${latex} `; // a blank, or \pi and n would be \pin
  const [before, after = ""] = (inside || /^[$?]/.test(latex) ? letter : `$${letter.includes("|") ? letter : `${letter}|`}$`).split("|");
  const selected = from === box.selectionStart ? value.slice(from, end) : "";
  write(before + selected + after, from, end);
  box.selectionStart = box.selectionEnd = from + before.length + selected.length;
}

// ---- symbols

const buttons = [];
for (const [name, group] of GROUPS) {
  const made = group.map(([sign, latex]) => {
    const button = element("button", { type: "button", title: latex.replaceAll("|", ""), tabindex: buttons.length ? "-1" : "0", onclick: () => insert(latex) }, sign);
    buttons.push(button);
    return button;
  });
  symbols.append(element("div", { role: "group", "aria-label": name, "data-name": name }, ...made));
}

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

all.hidden = false; // it needs this script
for (const place of [symbols, all]) place.addEventListener("mousedown", (event) => event.preventDefault()); // the box keeps the focus
all.addEventListener("click", () => {
  const open = symbols.classList.toggle("open");
  all.setAttribute("aria-expanded", String(open));
  hint();
});

function hint() {
  symbols.classList.toggle("begun", symbols.scrollLeft > 4);
  symbols.classList.toggle("more", symbols.scrollLeft + symbols.clientWidth < symbols.scrollWidth - 4);
}

symbols.addEventListener("scroll", hint);
new ResizeObserver(hint).observe(symbols);

// ---- commands

let begun = -1; // the place of the backslash
let chosen = -1;

function suggest() {
  const before = box.value.slice(0, box.selectionStart), name = before.match(/\\([a-zA-Z]*)$/)?.[1];
  const found = name === undefined || isCommand(name) ? [] : commandsFor(name);
  begun = found.length ? before.length - name.length - 1 : -1;
  choose(-1);
  list.hidden = !found.length;
  if (!found.length) return;
  list.replaceChildren(...found.map(([sign, latex], i) => element("li", {
    role: "option", id: `command-${i}`, "aria-selected": "false", onpointerdown: (event) => { event.preventDefault(); insert(latex, begun); },
  }, element("span", {}, sign), latex.replace("|", ""))));
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = getComputedStyle(box).font;
  const wide = pen.measureText(before.slice(before.lastIndexOf("\n") + 1, begun)).width;
  list.style.insetInlineStart = `${wide % Math.max(1, box.clientWidth - list.offsetWidth)}px`;
}

function choose(number) {
  chosen = number;
  [...list.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === number)));
  if (number >= 0) box.setAttribute("aria-activedescendant", `command-${number}`);
  else box.removeAttribute("aria-activedescendant");
}

function onList(event) {
  if (list.hidden || event.isComposing) return false;
  const size = list.childElementCount;
  if (event.key === "ArrowDown") choose((chosen + 1) % size);
  else if (event.key === "ArrowUp") choose(chosen > 0 ? chosen - 1 : size - 1);
  else if (event.key === "Tab" || (event.key === "Enter" && chosen >= 0)) insert(commandsFor(box.value.slice(begun + 1, box.selectionStart))[Math.max(chosen, 0)][1], begun);
  else if (event.key === "Escape") list.hidden = true;
  else return false;
  event.preventDefault();
  return true;
}

// A closing sign that is typed before the one that was inserted takes its place, if it would close nothing.
function typedOver(key) {
  const { selectionStart: at, selectionEnd: end, value } = box, plain = value.replace(/\\[^]/g, "\\\\");
  if (at !== end || plain[at] !== key) return false;
  const count = (sign, text) => text.split(sign).length - 1;
  const closed = key === "}" ? count("{", plain) === count("}", plain) : key === "$" && count("$", plain) % 2 === 0 && count("$", plain.slice(0, at)) % 2 === 1;
  if (closed) box.setSelectionRange(at + 1, at + 1);
  return closed;
}

// ---- the query as it is read

const known = new Map();

export function readQuery(q) {
  if (!known.has(q)) known.set(q, ask("preview", { q }).catch((error) => { known.delete(q); throw error; }));
  if (known.size > 100) known.delete(known.keys().next().value);
  return known.get(q);
}

const CONTEXT = 24;

function problemOf({ latex, start, end, message }) {
  const before = latex.slice(Math.max(0, start - CONTEXT), start), after = latex.slice(end, end + CONTEXT);
  const source = element("code", {}, before, element("mark", {}, latex.slice(start, end) || "\u2009"), after);
  const show = () => {
    const at = Math.max(0, box.value.indexOf(latex)) + start;
    box.focus();
    box.setSelectionRange(at, at + end - start);
  };
  return element("p", { class: "problem" }, source, " ", message, " ", element("button", { type: "button", class: "quiet", onclick: show }, "Go there"));
}

export function showRead(read) {
  const same = read.kind === "words" && !read.html.includes("<mark"); // nothing that the box does not show
  preview.replaceChildren(element("div", { html: same ? "" : read.html, dir: "auto" }), ...read.problems.map(problemOf));
  fit(preview);
}

let timer = 0;
export function showPreview(delay = 150) {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const q = box.value;
    const read = q.trim() ? await readQuery(q).catch(() => null) : { html: "", problems: [] };
    if (read && q === box.value) showRead(read);
  }, delay);
}

export function dropPreview() {
  clearTimeout(timer);
}

export function grow() {
  if (CSS.supports("field-sizing", "content")) return;
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}

box.addEventListener("input", () => {
  grow();
  suggest();
  showPreview();
});
box.addEventListener("blur", () => { list.hidden = true; });

box.addEventListener("paste", async (event) => {
  if (!mayChange(event.clipboardData)) return;
  event.preventDefault();
  const plain = event.clipboardData.getData("text/plain"), found = await pasted(event.clipboardData);
  const inside = box.value.slice(0, box.selectionStart).split("$").length % 2 === 0;
  write(found === null ? plain : inside ? found.replaceAll("$", "") : found);
});

box.addEventListener("keydown", (event) => {
  if (onList(event)) return;
  if (!event.isComposing && typedOver(event.key)) event.preventDefault();
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit();
  }
});
