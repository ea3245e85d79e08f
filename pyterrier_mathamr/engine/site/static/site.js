// The search page of a static site: its state is the URL, ?q=….

import { GROUPS } from "./commands.js";
import { Site, wordsOf } from "./search.js";

const STEP = 10, AROUND = 160; // results shown at once; characters around a match
const $ = (id) => document.getElementById(id);
const form = $("form"), box = $("query"), results = $("results"), status = $("status"), preview = $("preview"), symbols = $("symbols"), all = $("all");
const fetched = async (name, build) => {
  const answer = await (build ? fetch(`${name}?${build}`) : fetch(name, { cache: "no-cache" }));
  if (!answer.ok) throw new Error(`${name}: the server answered ${answer.status}`);
  return answer;
};
const site = new Site(fetched), home = document.title;

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "html") made.innerHTML = value; // written by Python from escaped text and converted formulas
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// ---- the box

const buttons = GROUPS.flatMap(([name, group]) => {
  const made = group.map(([sign, latex]) => element("button", { type: "button", title: latex.replaceAll("|", ""), tabindex: "-1", onclick: () => insert(latex) }, sign));
  symbols.append(element("div", { role: "group", "aria-label": name, "data-name": name }, ...made));
  return made;
});
buttons[0].tabIndex = 0;

symbols.addEventListener("keydown", (event) => {
  const at = buttons.indexOf(document.activeElement), to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  buttons[at].tabIndex = -1;
  const next = buttons.at(to % buttons.length);
  next.tabIndex = 0;
  next.focus();
});

function insert(latex) {
  const { selectionStart: start, selectionEnd: end, value } = box, inside = value.slice(0, start).split("$").length % 2 === 0;
  const spaced = /\\[a-zA-Z]+$/.test(latex) ? `${latex} ` : latex; // \pi and n would be \pin
  const [before, after = ""] = (inside || /^[$?]/.test(latex) ? spaced : spaced.includes("|") ? `$${spaced}$` : `$${spaced}|$`).split("|");
  box.focus();
  const text = before + value.slice(start, end) + after;
  if (!document.execCommand("insertText", false, text)) box.setRangeText(text, start, end, "end"); // the former can be undone
  box.selectionStart = box.selectionEnd = start + before.length + end - start;
}

function hint() {
  symbols.classList.toggle("begun", symbols.scrollLeft > 4);
  symbols.classList.toggle("more", symbols.scrollLeft + symbols.clientWidth < symbols.scrollWidth - 4);
}

symbols.addEventListener("scroll", hint);
new ResizeObserver(hint).observe(symbols);
for (const place of [symbols, all]) place.addEventListener("mousedown", (event) => event.preventDefault()); // the box keeps the focus
all.addEventListener("click", () => all.setAttribute("aria-expanded", String(symbols.classList.toggle("open"))));

box.addEventListener("focus", () => { site.file("formulas").catch(() => {}); }, { once: true });
box.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.matches("textarea, input")) return;
  event.preventDefault();
  box.focus();
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  box.blur(); // now, since the symbols then leave, and a link would move away below a click
  const q = box.value.trim();
  if (q !== asked()) history.pushState(null, "", `?${new URLSearchParams({ q })}`);
  show();
});
addEventListener("popstate", show);

// ---- results

const asked = () => new URLSearchParams(location.search).get("q") ?? "";

async function show() {
  const q = asked();
  if (document.activeElement !== box || box.value.trim() !== q) box.value = q;
  document.body.className = q ? "found" : "home";
  document.title = q ? `${q} – ${home}` : home;
  preview.replaceChildren();
  if (!q) {
    results.replaceChildren();
    status.textContent = "";
    return;
  }
  results.setAttribute("aria-busy", "true");
  try {
    const answer = await site.search(q);
    if (q !== asked()) return;
    preview.replaceChildren(...answer.problems.map(({ latex, message }) => element("p", { class: "problem" }, element("code", {}, latex), ` ${message}.`)));
    const list = element("ol", { class: "results" }), more = element("div", { class: "after" });
    await append(answer, list, more);
    if (q !== asked()) return;
    const nothing = element("div", { class: "nothing" }, element("p", { class: "title" }, "Nothing was found"));
    results.replaceChildren(...(answer.hits.length ? [list, more] : [nothing]));
    fit(list);
    status.textContent = `${answer.hits.length} results`;
  } catch (error) {
    if (q === asked()) results.replaceChildren(element("p", { class: "error", role: "alert" }, `${error.message}. `, element("button", { type: "button", onclick: show }, "Retry")));
  } finally {
    if (q === asked()) results.removeAttribute("aria-busy");
  }
}

async function append(answer, list, more) {
  const begin = list.children.length, hits = answer.hits.slice(begin, begin + STEP);
  const sections = await Promise.all(hits.map(({ section }) => site.section(section)));
  list.append(...hits.map((hit, i) => element("li", {}, resultOf(hit, sections[i], answer.query))));
  const left = answer.hits.length - list.children.length;
  more.replaceChildren(...(left ? [element("button", { type: "button", onclick: () => append(answer, list, more).then(() => fit(list)) }, `${left} more`)] : []));
}

const KINDS = ["", "instance", "renamed", "equal", "instance", "renamed", "equal"];
const NAMES = ["", "contains an instance", "contains it, renamed", "contains it", "instance", "renamed", "equal"];

function resultOf(hit, { address, page, title, text, formulas }, { words }) {
  const classes = new Map(hit.formulas.flatMap((match, part) => (match ? [[match.place, `formula part-${part % 8} ${KINDS[match.tier]}`]] : [])));
  const written = (some) => writtenOf(some, formulas, classes, new Set(words));
  const about = [...(page ? [page] : []), ...hit.formulas.filter(Boolean).map(({ tier }) => NAMES[tier])];
  return element("article", {},
    element("h2", { class: "title" }, element("a", { href: address, dir: "auto" }, ...written(title || page))),
    element("p", { class: "snippet", dir: "auto" }, ...written(snippetOf(text, [...classes.keys()], words))),
    element("p", { class: "context" }, ...about.map((each) => element("bdi", {}, each))));
}

// The block with the first matching formula, else the one with most words of the query; cut around the match.
function snippetOf(text, places, words) {
  const blocks = text.split("\n"), marks = places.map((place) => new RegExp(`\\bFORMULA_${place}\\b`));
  const count = (block) => {
    const found = new Set(wordsOf(block));
    return 100 * marks.filter((mark) => mark.test(block)).length + words.filter((word) => found.has(word)).length;
  };
  const block = blocks.reduce((best, each) => (count(each) > count(best) ? each : best), blocks[0]);
  const pieces = block.split(/(?<=\s)/), isHit = (piece) => marks.some((mark) => mark.test(piece)) || wordsOf(piece).some((word) => words.includes(word));
  const hit = Math.max(0, pieces.findIndex(isHit));
  let first = hit, last = hit + 1;
  for (let length = 0; first > 0 && (length += pieces[first - 1].length) < AROUND / 2;) first--;
  for (let length = 0; last < pieces.length && (length += pieces[last].length) < AROUND;) last++;
  return `${first ? "… " : ""}${pieces.slice(first, last).join("").trim()}${last < pieces.length ? " …" : ""}`;
}

function writtenOf(text, formulas, classes, words) {
  return text.split(/(FORMULA_\d+|[\p{L}\p{N}]+)/u).map((piece) => {
    const place = Number(piece.match(/^FORMULA_(\d+)$/)?.[1] ?? -1);
    if (place >= 0 && formulas[place] !== undefined) return element("span", { class: classes.get(place) ?? "formula", html: formulas[place] });
    return words.size && words.has(wordsOf(piece)[0]) ? element("mark", { class: "part-w" }, piece) : piece;
  });
}

// What is too wide scrolls in place.
function fit(place) {
  for (const formula of place.querySelectorAll(".formula")) {
    formula.classList.toggle("wide", formula.firstElementChild.getBoundingClientRect().width > formula.parentElement.clientWidth);
  }
}

results.replaceChildren();
if (!asked()) box.focus();
show();
