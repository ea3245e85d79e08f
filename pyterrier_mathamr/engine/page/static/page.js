// The page of `mathamr serve`: its state is the URL, ?q=…&mode=… or ?like=POST, and its content comes from /api.
//
// A query that is nothing but a formula shows formulas first, any other one posts. The tab that is shown is asked for first,
// then the other one. What was shown is kept, so that going back needs no request.

import { dropPreview, grow, readQuery, showPreview, showRead } from "./box.js";
import { $, ask, dateOf, element, errorOf, plural, textOf } from "./dom.js";
import { STEP, addressOf, columnsOf, kindsOf, stepFormula, suggestedOf } from "./results.js";
import { postOf } from "./why.js";

const form = $("form"), box = $("query"), results = $("results"), status = $("status"), tabs = $("tabs");
const FILTERS = ["in", "kind", "since", "until"];
const NAMES = { posts: "Posts", formulas: "Formulas" };
const KEPT = 30; // queries whose results are kept

let settings = { title: $("title").textContent, examples: [] };
let running = null; // what is still wanted

if (location.pathname.endsWith("/plain")) history.replaceState(null, "", `./${location.search}`); // sent before this script was here
history.scrollRestoration = "manual"; // results come later than the browser would scroll

function stateOfUrl() {
  const parameters = new URLSearchParams(location.search);
  const state = { q: parameters.get("q") || "" };
  for (const name of ["mode", "weak", "k", "post", "like", ...FILTERS]) if (parameters.get(name)) state[name] = parameters.get(name);
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
  showLike(state);
  const asks = Boolean(state.q.trim() || state.like);
  if (!state.post && !state.like) document.title = titled(state.q);
  document.body.className = state.post ? "reading" : asks ? "found" : "home";
  $("choice").hidden = !asks || Boolean(state.post);
  $("legend").replaceChildren();
  const ready = wait(own.signal);
  try {
    const shown = () => scrollTo(0, y);
    if (state.post) await showPost(state, own.signal, shown);
    else if (asks) await showResults(state, own.signal, shown, ready);
    else showHome(), shown();
  } catch (error) {
    if (own.signal.aborted) return;
    results.replaceChildren(errorOf(error, () => show()));
    status.textContent = "";
  } finally {
    if (!own.signal.aborted) ready();
  }
}

// After a moment, dim what is shown, or say that something will be; the function that is returned ends it.
function wait(signal) {
  results.removeAttribute("aria-busy");
  const timer = setTimeout(() => {
    if (results.childElementCount) results.setAttribute("aria-busy", "true");
    else results.replaceChildren(element("p", { class: "note", role: "status" }, "Searching …"));
  }, 120);
  signal.addEventListener("abort", () => clearTimeout(timer));
  return () => {
    clearTimeout(timer);
    results.removeAttribute("aria-busy");
  };
}

const titled = (name) => name ? `${name.slice(0, 60)} – ${settings.title}` : settings.title;

function showHome() {
  status.textContent = "";
  showRead({ html: "", problems: [] });
  if (settings.size === 0) {
    results.replaceChildren(element("div", { class: "nothing" }, element("p", { class: "title" }, "There are no posts yet"),
      element("p", {}, "Add a folder of notes: ", element("code", {}, "mathamr update NOTES -o ENGINE"))));
    return;
  }
  const items = settings.examples.map(({ kind, q, html }) => element("li", {}, element("a", { href: addressOf({}, { q }), "data-q": q },
    element("span", { class: "kind" }, `A ${kind === "question" && !q.endsWith("?") ? "statement" : kind}`), element("span", { html }))));
  results.replaceChildren(items.length ? element("ul", { class: "examples", "aria-label": "Examples" }, ...items) : "");
}

// ---- posts that are like another one

const likened = new Map(); // of each post, what is asked for posts like it, and its title

function likenessOf(docno) {
  if (!likened.has(docno)) likened.set(docno, ask("post", { docno }).catch((error) => { likened.delete(docno); throw error; }));
  return likened.get(docno);
}

function showLike({ like, post }) {
  const chip = $("like");
  chip.hidden = !like || Boolean(post);
  if (chip.hidden) return;
  const name = element("bdi", {}, like), end = element("a", { href: location.pathname, "data-home": true, "aria-label": "No longer posts like this" }, "×");
  chip.replaceChildren("Posts like ", element("a", { href: addressOf({}, { post: like }), "data-post": like }, name), " ", end);
  likenessOf(like).then(({ title_html: html }) => {
    if (html) name.innerHTML = html;
    if (stateOfUrl().like === like && !stateOfUrl().post) document.title = titled(`Like ${textOf(name)}`);
  }, () => {});
}

async function showPost(state, signal, shown) {
  const back = state.q || state.like ? element("a", { class: "back", href: addressOf(state, { post: "" }) }, "← Results") : null;
  const post = await postOf(state.post, state.q, back);
  if (signal.aborted) return;
  results.replaceChildren(post);
  document.title = titled(textOf(post.querySelector(".title")));
  shown();
  if (state.q) readQuery(state.q).then((read) => !signal.aborted && showRead(read), () => {});
}

const views = new Map(); // of each query: answers and what is shown of them, by mode

function viewOf({ q, like, weak, ...state }) {
  const key = JSON.stringify([q, like, weak, ...FILTERS.map((name) => state[name])]);
  if (!views.has(key)) views.set(key, { answers: {}, shown: {} });
  if (views.size > KEPT) views.delete(views.keys().next().value);
  return views.get(key);
}

async function showResults(state, signal, shown, ready) {
  const q = state.like ? (await likenessOf(state.like)).similar : state.q;
  if (signal.aborted) return;
  const read = state.like ? { kind: "words", html: "", problems: [] } : await readQuery(q);
  if (signal.aborted) return;
  showRead(read);
  const modes = read.kind === "words" ? ["posts"] : read.kind === "formula" ? ["formulas", "posts"] : ["posts", "formulas"];
  const mode = modes.includes(state.mode) ? state.mode : modes[0];
  const view = viewOf(state);
  showTabs(modes, mode, view, state);
  for (const each of [mode, ...modes.filter((other) => other !== mode)]) {
    const answer = view.answers[each] || await askFor(each, q, state, each === mode && state.k ? { k: state.k } : {}, signal).catch((error) => {
      if (each === mode || signal.aborted) throw error;
    });
    if (signal.aborted) return;
    if (answer) view.answers[each] = answer;
    if (each === mode) {
      showFound(view, mode, q, state);
      ready();
      shown();
    }
    showTabs(modes, mode, view, state);
  }
}

async function askFor(mode, q, state, part, signal) {
  const names = mode === "posts" ? ["weak", ...FILTERS] : FILTERS;
  const chosen = names.filter((name) => state[name]).map((name) => [name, state[name]]);
  const answer = await ask("search", { q, mode, ...part, ...Object.fromEntries(chosen) }, signal);
  for (const system of answer.systems) {
    system.asked = system.results.length; // with the post that is like itself
    system.results = system.results.filter(({ docno }) => docno !== state.like);
  }
  return answer;
}

function showFound(view, mode, q, state) {
  const answer = view.answers[mode];
  const more = async () => {
    const offset = Math.max(...answer.systems.map(({ asked }) => asked));
    const found = await askFor(mode, q, state, { k: STEP, offset });
    answer.systems.forEach((system, i) => {
      system.results.push(...found.systems[i].results);
      system.asked += found.systems[i].asked;
      system.more = found.systems[i].more;
    });
    history.replaceState(history.state, "", addressOf(stateOfUrl(), { k: offset + STEP }));
    return found;
  };
  view.shown[mode] ||= columnsOf(answer, q, { ...state, mode }, { more, weak: () => go({ ...state, weak: "1" }) });
  results.replaceChildren(...[suggestedOf(answer), view.shown[mode]].filter(Boolean));
  $("legend").replaceChildren(...kindsOf(view.shown[mode]));
  status.textContent = `${countOf(answer)} ${mode === "posts" ? "posts" : "posts with such formulas"} in ${answer.milliseconds} ms`;
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
  go({ ...(box.value.trim() ? { q: box.value } : { like: stateOfUrl().like }), ...filters });
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
  const link = event.target.closest?.("a[data-post], a[data-q], a[data-like], a[data-mode], a[data-home], a.back, #title");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    const state = stateOfUrl();
    if (link.dataset.q) go({ q: link.dataset.q });
    else if (link.dataset.like) go({ like: link.dataset.like });
    else if (link.dataset.post) go({ ...state, post: link.dataset.post });
    else if (link.dataset.mode !== undefined) go({ ...state, mode: link.dataset.mode, k: "" });
    else if (link.id === "title" || link.dataset.home !== undefined) go({});
    else go({ ...state, post: "" });
    return;
  }
  const latex = formulaOf(event)?.dataset.latex;
  if (latex) go({ q: queryOf(latex) });
});

function step(forward) {
  const articles = [...results.querySelectorAll("article")];
  const at = articles.findIndex((article) => article.contains(document.activeElement));
  articles[at < 0 ? 0 : Math.min(Math.max(at + (forward ? 1 : -1), 0), articles.length - 1)]?.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("textarea, input, select")) return;
  const formula = formulaOf(event);
  if (event.key === "Enter") (formula || event.target.querySelector(":scope:is(article) > .title a"))?.click();
  else if (formula && !formula.matches(".wide") && ["ArrowLeft", "ArrowRight"].includes(event.key)) {
    event.preventDefault();
    stepFormula(formula, event.key === "ArrowRight");
  } else if (event.key === "Escape") $("help").open = false;
  else if (event.key === "/") {
    event.preventDefault();
    box.focus();
  } else if (event.key === "j" || event.key === "k") step(event.key === "j");
});

addEventListener("popstate", (event) => show(event.state?.y));

function askSettings() {
  return ask("settings", {}).then((answer) => {
    if (document.title.endsWith(settings.title)) document.title = document.title.slice(0, -settings.title.length) + answer.title;
    settings = answer;
    $("title").textContent = answer.title;
    $("about").textContent = answer.about || `${plural(answer.size, "post")} with ${plural(answer.formulas, "formula")}`;
    $("updated").textContent = `Updated ${dateOf(answer.updated)}`;
    $("folders").replaceChildren(...answer.folders.map((value) => element("option", { value })));
    $("in").textContent = answer.kinds.length ? "Folder or file" : "Beginning of the id";
    for (const name of FILTERS) form.elements[name].closest("label").hidden = !answer.filters.includes(name);
    for (const kind of answer.kinds) setFilter(form.elements.kind, kind);
    form.elements.kind.value = stateOfUrl().kind || "";
    const state = stateOfUrl();
    if (state.q || state.like || state.post) return;
    showHome();
    if (box.value.trim()) showPreview(0);
  });
}

$("kinds").replaceChildren(...kindsOf());
results.querySelector("noscript")?.remove();
const typed = !location.search && box.value; // while the page was loading
show().then(() => { box.value = typed || box.value; });
askSettings().catch((error) => {
  if (document.body.className === "home") results.replaceChildren(errorOf(error, () => show().then(askSettings)));
});
