// The page of `mathamr serve`: its state is the URL, ?q=…&mode=…, and its content comes from /api.

import { dropPreview, showPreview } from "./box.js";
import { $, ask, element, errorOf } from "./dom.js";
import { columnsOf, markFormulas } from "./results.js";

const form = $("form"), box = $("query"), results = $("results"), status = $("status"), preview = $("preview");

let settings = { systems: [], examples: [], size: 0 };
let running = null; // the request whose answer is still wanted

history.scrollRestoration = "manual"; // results come later than the browser would scroll

const FILTERS = ["in", "kind", "since", "until"];

function filters() {
  return Object.fromEntries(FILTERS.map((name) => [name, form.elements[name].value.trim()]));
}

function setFilter(control, value) {
  if (control instanceof HTMLSelectElement && ![...control.options].some((option) => option.value === value))
    control.append(element("option", { value }, value));
  control.value = value;
  if (value) $("filters").open = true;
}

function stateOfUrl() {
  const parameters = new URLSearchParams(location.search);
  const state = { q: parameters.get("q") || "", mode: parameters.get("mode") === "formulas" ? "formulas" : "posts" };
  if (parameters.get("weak") === "1") state.weak = "1";
  for (const name of FILTERS) if (parameters.get(name)) state[name] = parameters.get(name);
  return state;
}

function go(state) {
  const parameters = new URLSearchParams();
  if (state.q) parameters.set("q", state.q);
  if (state.mode !== "posts") parameters.set("mode", state.mode);
  if (state.mode !== "formulas") for (const name of ["weak", ...FILTERS]) if (state[name]) parameters.set(name, state[name]);
  const text = parameters.toString(), url = location.pathname + (text && `?${text}`);
  if (url !== location.pathname + location.search) {
    history.replaceState({ y: scrollY }, "");
    history.pushState(null, "", url);
  }
  scrollTo(0, 0);
  return show();
}

async function show() {
  const state = stateOfUrl();
  box.value = state.q;
  form.elements.mode.value = state.mode;
  for (const name of FILTERS) setFilter(form.elements[name], state[name] || "");
  document.title = state.q ? `${state.q.slice(0, 60)} – Math search` : "Math search";
  running?.abort();
  dropPreview();
  if (!state.q.trim()) {
    showHint();
    return;
  }
  const own = (running = new AbortController());
  status.textContent = "searching …";
  results.setAttribute("aria-busy", "true");
  try {
    const answer = await ask("search", state, own.signal);
    if (box.value === state.q) preview.innerHTML = answer.query_html;
    results.replaceChildren(columnsOf(answer, state, () => go({ ...state, weak: "1" })));
    markFormulas(results);
    const count = Math.max(...answer.systems.map((system) => system.results.length), 0);
    status.textContent = `${count} result${count === 1 ? "" : "s"} in ${answer.milliseconds} ms`;
  } catch (error) {
    if (own.signal.aborted) return;
    results.replaceChildren(errorOf(error));
    status.textContent = "";
  }
  results.removeAttribute("aria-busy");
}

function showHint() {
  status.textContent = "";
  preview.replaceChildren();
  results.removeAttribute("aria-busy");
  results.replaceChildren($("hint").content.cloneNode(true));
  for (const example of settings.examples) {
    const button = element("button", { type: "button", html: example.html, onclick: () => go({ q: example.q, mode: "posts" }) });
    $("examples").append(element("li", {}, button));
  }
  if (!settings.examples.length) results.querySelector("h2").remove();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  go({ q: box.value, mode: form.elements.mode.value, ...filters() });
});

function formulaOf(event) {
  return event.target instanceof Element ? event.target.closest(".formula") : null;
}

results.addEventListener("click", (event) => {
  const latex = formulaOf(event)?.dataset.latex;
  if (latex) go({ q: latex.includes("$") ? `\\(${latex}\\)` : `$${latex}$`, mode: "formulas" });
});

function step(forward) {
  const articles = [...results.querySelectorAll("article")];
  const at = articles.findIndex((article) => article.contains(document.activeElement));
  articles[at < 0 ? 0 : Math.min(Math.max(at + (forward ? 1 : -1), 0), articles.length - 1)]?.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLTextAreaElement) return;
  if (event.key === "Enter") formulaOf(event)?.click();
  else if (event.key === "/") {
    event.preventDefault();
    box.focus();
  } else if (event.key === "j" || event.key === "k") step(event.key === "j");
});

addEventListener("popstate", async (event) => {
  await show();
  scrollTo(0, event.state?.y || 0);
});

ask("settings", {}).then((answer) => {
  settings = answer;
  $("folders").replaceChildren(...answer.folders.map((value) => element("option", { value })));
  for (const kind of answer.kinds) setFilter(form.elements.kind, kind);
  form.elements.kind.value = stateOfUrl().kind || "";
  $("filters").open = FILTERS.some((name) => stateOfUrl()[name]);
  $("size").textContent = `${answer.size.toLocaleString("en")} post${answer.size === 1 ? "" : "s"}`;
}).catch(() => {}).finally(() => {
  if (document.activeElement === box && box.value && !location.search) showPreview(0); // typed while the page was loading
  else show();
});
