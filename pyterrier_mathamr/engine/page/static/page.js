// The page of `mathamr serve`: its state is the URL, ?q=…&mode=…, and its content comes from /api.
//
// A query that is nothing but a formula shows formulas first, any other one posts. The tab that is shown is asked for first,
// then the other one. What was shown is kept, so that going back needs no request.

import { dropPreview, grow, readQuery, showPreview, showRead } from "./box.js";
import { $, ask, dateOf, element, errorOf, plural } from "./dom.js";
import { STEP, addressOf, columnsOf, legendOf } from "./results.js";
import { postOf } from "./why.js";

const form = $("form"), box = $("query"), results = $("results"), status = $("status"), tabs = $("tabs");
const FILTERS = ["in", "kind", "since", "until"];
const NAMES = { posts: "Posts", formulas: "Formulas" };
const KEPT = 30; // queries whose results are kept

let settings = { title: "Math search", about: "", systems: [], examples: [], size: 0, formulas: 0 };
let running = null; // what is still wanted

history.scrollRestoration = "manual"; // results come later than the browser would scroll

function stateOfUrl() {
  const parameters = new URLSearchParams(location.search);
  const state = { q: parameters.get("q") || "" };
  for (const name of ["mode", "weak", "k", "post", ...FILTERS]) if (parameters.get(name)) state[name] = parameters.get(name);
  if (!(state.mode in NAMES)) delete state.mode;
  return state;
}

function go(state) {
  const url = addressOf({}, state).replace(/\?$/, "");
  if (url !== location.pathname + location.search) {
    history.replaceState({ y: scrollY }, "");
    history.pushState(null, "", url);
  }
  return show();
}

// ---- the shown answer

async function show(y = 0) {
  const state = stateOfUrl();
  running?.abort();
  dropPreview();
  const own = (running = new AbortController());
  box.value = state.q;
  grow();
  for (const name of FILTERS) setFilter(form.elements[name], state[name] || "");
  showChosen(state);
  document.title = state.q ? `${state.q.slice(0, 60)} – ${settings.title}` : settings.title;
  document.body.className = state.post ? "reading" : state.q.trim() ? "found" : "home";
  $("choice").hidden = !state.q.trim() || Boolean(state.post);
  results.removeAttribute("aria-busy");
  try {
    const shown = () => scrollTo(0, y);
    if (state.post) await showPost(state, own.signal, shown);
    else if (state.q.trim()) await showResults(state, own.signal, shown);
    else showHome(), shown();
  } catch (error) {
    if (own.signal.aborted) return;
    results.replaceChildren(errorOf(error));
    status.textContent = "";
  }
  if (!own.signal.aborted) results.removeAttribute("aria-busy");
}

function showHome() {
  status.textContent = "";
  showRead({ html: "", problems: [] });
  const items = settings.examples.map(({ kind, q, html }) => element("li", {}, element("a", { href: addressOf({}, { q }), "data-q": q },
    element("span", { class: "kind" }, `A ${kind === "question" && !q.endsWith("?") ? "statement" : kind}`), element("span", { html }))));
  results.replaceChildren(items.length ? element("ul", { class: "examples", "aria-label": "Examples" }, ...items) : "");
}

async function showPost(state, signal, shown) {
  results.setAttribute("aria-busy", "true");
  const back = state.q ? element("a", { class: "back", href: addressOf(state, { post: "" }) }, "← Results") : null;
  const post = await postOf(state.post, state.q, back);
  if (signal.aborted) return;
  results.replaceChildren(post);
  shown();
  if (state.q) readQuery(state.q).then((read) => !signal.aborted && showRead(read), () => {});
}

const views = new Map(); // of each query: answers and what is shown of them, by mode

function viewOf({ q, weak, ...state }) {
  const key = JSON.stringify([q, weak, ...FILTERS.map((name) => state[name])]);
  if (!views.has(key)) views.set(key, { answers: {}, shown: {} });
  if (views.size > KEPT) views.delete(views.keys().next().value);
  return views.get(key);
}

async function showResults(state, signal, shown) {
  const waiting = setTimeout(() => results.setAttribute("aria-busy", "true"), 120);
  signal.addEventListener("abort", () => clearTimeout(waiting));
  const read = await readQuery(state.q);
  if (signal.aborted) return;
  showRead(read);
  const modes = read.kind === "words" ? ["posts"] : read.kind === "formula" ? ["formulas", "posts"] : ["posts", "formulas"];
  const mode = modes.includes(state.mode) ? state.mode : modes[0];
  const view = viewOf(state);
  showTabs(modes, mode, view, state);
  for (const each of [mode, ...modes.filter((other) => other !== mode)]) {
    const answer = view.answers[each] || await askFor(each, state, each === mode && state.k ? { k: state.k } : {}, signal).catch((error) => {
      if (each === mode || signal.aborted) throw error;
    });
    clearTimeout(waiting);
    if (signal.aborted) return;
    if (answer) view.answers[each] = answer;
    if (each === mode) {
      showFound(view, mode, state);
      shown();
    }
    showTabs(modes, mode, view, state);
  }
}

function askFor(mode, state, part, signal) {
  const names = mode === "posts" ? ["weak", ...FILTERS] : FILTERS;
  const chosen = names.filter((name) => state[name]).map((name) => [name, state[name]]);
  return ask("search", { q: state.q, mode, ...part, ...Object.fromEntries(chosen) }, signal);
}

function showFound(view, mode, state) {
  const of = { ...state, mode };
  const more = async (offset) => {
    const found = await askFor(mode, state, { k: STEP, offset });
    view.answers[mode].systems.forEach((system, i) => {
      system.results.push(...found.systems[i].results);
      system.more = found.systems[i].more;
    });
    history.replaceState(history.state, "", addressOf(stateOfUrl(), { k: offset + STEP }));
    return found;
  };
  view.shown[mode] ||= columnsOf(view.answers[mode], of, { more, weak: () => go({ ...state, weak: "1" }) });
  const legend = legendOf(view.shown[mode]);
  results.replaceChildren(...[legend, view.shown[mode]].filter(Boolean));
  results.removeAttribute("aria-busy");
  const answer = view.answers[mode], count = countOf(answer);
  status.textContent = `${count} ${NAMES[mode].toLowerCase()} in ${answer.milliseconds} ms`;
}

// Posts, or formulas that match; similar ones come last and are not counted.
function countOf(answer) {
  const counts = answer.systems.map(({ results }) => results.filter(({ tier }) => tier !== "similar").length);
  const more = answer.systems.some((system, i) => system.more && counts[i] === system.results.length);
  return `${Math.max(...counts, 0)}${more ? "+" : ""}`;
}

function showTabs(modes, mode, view, state) {
  tabs.replaceChildren(...["posts", "formulas"].filter((each) => modes.includes(each)).map((each) => element("a", {
    href: addressOf(state, { mode: each === modes[0] ? "" : each, k: "" }), "data-mode": each === modes[0] ? "" : each, "aria-current": each === mode && "page",
  }, NAMES[each], " ", element("span", { class: "count" }, view.answers[each] ? countOf(view.answers[each]) : "…"))));
}

// ---- filters

function setFilter(control, value) {
  if (value && control instanceof HTMLSelectElement && ![...control.options].some((option) => option.value === value)) control.append(element("option", { value }, value));
  control.value = value;
}

function showChosen(state) {
  const chosen = FILTERS.map((name) => state[name]).filter(Boolean);
  $("chosen").textContent = chosen.length ? `: ${chosen.join(", ")}` : "";
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  $("filters").open = false;
  box.blur();
  const filters = Object.fromEntries(FILTERS.map((name) => [name, form.elements[name].value.trim()]));
  go({ q: box.value, ...filters });
});

form.addEventListener("reset", (event) => {
  event.preventDefault();
  $("filters").open = false;
  go({ ...stateOfUrl(), k: "", ...Object.fromEntries(FILTERS.map((name) => [name, ""])) });
});

// ---- links within the page, and the keyboard

function formulaOf(event) {
  return event.target instanceof Element ? event.target.closest(".formula[tabindex]") : null;
}

const queryOf = (latex) => latex.includes("$") ? `\\(${latex}\\)` : `$${latex}$`;

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-post], a[data-q], a[data-mode], a.back, #title");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    const state = stateOfUrl();
    if (link.dataset.q) go({ q: link.dataset.q });
    else if (link.dataset.post) go({ ...state, post: link.dataset.post });
    else if (link.dataset.mode !== undefined) go({ ...state, mode: link.dataset.mode, k: "" });
    else if (link.id === "title") go({});
    else go({ ...state, post: "" });
    return;
  }
  const latex = formulaOf(event)?.dataset.latex;
  if (latex) go({ q: queryOf(latex) });
});

results.addEventListener("search", (event) => go({ q: event.detail.q }));

function step(forward) {
  const articles = [...results.querySelectorAll("article")];
  const at = articles.findIndex((article) => article.contains(document.activeElement));
  articles[at < 0 ? 0 : Math.min(Math.max(at + (forward ? 1 : -1), 0), articles.length - 1)]?.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("textarea, input, select")) return;
  if (event.key === "Enter") formulaOf(event)?.click();
  else if (event.key === "/") {
    event.preventDefault();
    box.focus();
  } else if (event.key === "j" || event.key === "k") step(event.key === "j");
});

addEventListener("popstate", (event) => show(event.state?.y));

ask("settings", {}).then((answer) => {
  settings = answer;
  $("title").textContent = answer.title;
  $("about").textContent = answer.about || `${plural(answer.size, "post")} with ${plural(answer.formulas, "formula")}`;
  $("updated").textContent = `Updated ${dateOf(answer.updated)}`;
  $("folders").replaceChildren(...answer.folders.map((value) => element("option", { value })));
  for (const kind of answer.kinds) setFilter(form.elements.kind, kind);
  form.elements.kind.value = stateOfUrl().kind || "";
}).catch(() => {}).finally(() => {
  if (document.activeElement !== box || !box.value || location.search) return show();
  showHome(); // and keep what was typed while the page was loading
  showPreview(0);
});
