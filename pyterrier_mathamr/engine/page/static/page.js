// The page of `mathamr serve`: its state is the URL, its content comes from /api.
// HTML that is inserted is made by the server from escaped text and converted formulas; nothing else is inserted.

const $ = (id) => document.getElementById(id);
const form = $("form"), box = $("query"), results = $("results"), status = $("status"), preview = $("preview");

const SYMBOLS = [
  ["√", "\\sqrt{|}"], ["a/b", "\\frac{|}{}"], ["xⁿ", "^{|}"], ["xₙ", "_{|}"], ["∑", "\\sum_{|}^{}"], ["∫", "\\int_{|}^{}"],
  ["∏", "\\prod_{|}^{}"], ["lim", "\\lim_{|}"], ["∞", "\\infty"], ["π", "\\pi"], ["α", "\\alpha"], ["ε", "\\varepsilon"],
  ["≤", "\\le"], ["≥", "\\ge"], ["≠", "\\ne"], ["∈", "\\in"], ["⊂", "\\subset"], ["→", "\\to"], ["ℝ", "\\mathbb{R}"], ["$ $", "$|$"],
];

let settings = { systems: [], examples: [], size: 0 };
let running = null; // the request whose answer is still wanted

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "html") made.innerHTML = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

async function ask(path, parameters, signal) {
  const answer = await fetch(`api/${path}?${new URLSearchParams(parameters)}`, { signal });
  const body = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Error(body.error || `the server answered ${answer.status}`);
  return body;
}

// ---- state: ?q=…&mode=…

function stateOfUrl() {
  const parameters = new URLSearchParams(location.search);
  return { q: parameters.get("q") || "", mode: parameters.get("mode") || "posts" };
}

function go(state) {
  const parameters = new URLSearchParams();
  if (state.q) parameters.set("q", state.q);
  if (state.mode !== "posts") parameters.set("mode", state.mode);
  const url = `${location.pathname}${parameters.size ? `?${parameters}` : ""}`;
  if (url !== location.pathname + location.search) history.pushState(null, "", url);
  show();
}

async function show() {
  const state = stateOfUrl();
  box.value = state.q;
  form.elements.mode.value = state.mode;
  document.title = state.q ? `${state.q.slice(0, 60)} – Math search` : "Math search";
  running?.abort();
  if (!state.q.trim()) {
    showHint();
    return;
  }
  running = new AbortController();
  status.textContent = "searching …";
  try {
    const answer = await ask("search", { q: state.q, mode: state.mode }, running.signal);
    preview.innerHTML = answer.query_html;
    showResults(answer, state);
  } catch (error) {
    if (error.name === "AbortError") return;
    results.replaceChildren(element("p", { class: "error", role: "alert" }, error.message));
    status.textContent = "";
  }
}

function showHint() {
  status.textContent = "";
  preview.replaceChildren();
  results.replaceChildren($("hint").content.cloneNode(true));
  for (const example of settings.examples) {
    const button = element("button", { type: "button", html: example.html, onclick: () => go({ q: example.q, mode: "posts" }) });
    $("examples").append(element("li", {}, button));
  }
}

// ---- results

function showResults(answer, state) {
  const columns = answer.systems.map((system) => {
    const list = element("section", { "aria-label": system.name });
    if (answer.systems.length > 1) list.append(element("h2", {}, system.name, " ", element("small", {}, `${system.milliseconds} ms`)));
    for (const result of system.results) list.append(resultOf(result, state, system));
    if (!system.results.length) list.append(element("p", { class: "quiet" }, "Nothing was found."));
    return list;
  });
  results.replaceChildren(element("div", { class: "columns" }, ...columns));
  const count = answer.systems[0].results.length;
  status.textContent = `${count} result${count === 1 ? "" : "s"} in ${answer.milliseconds} ms`;
}

function resultOf(result, state, system) {
  const score = element("span", { class: "quiet" }, ` ${result.score.toFixed(1)} · ${result.docno}`);
  const article = element("article", { tabindex: "0", "data-docno": result.docno });
  article.append(element("h3", {}, element("span", { html: result.title_html || "" }), score, movedOf(result)));
  article.append(element("div", { class: "snippet", html: result.snippet_html }));
  const tools = element("div", { class: "tools" });
  const details = element("div");
  if (system.explains && state.mode === "posts") {
    tools.append(toggle("Why?", details, () => explanationOf(state.q, result.docno)));
  }
  tools.append(toggle("Whole post", details, () => postOf(result.post_id || result.docno)));
  tools.append(toggle("Graph", details, () => graphOf(result.post_id || result.docno)));
  article.append(tools, details);
  return article;
}

function movedOf(result) {
  if (result.moved === undefined) return null;
  const text = result.moved === null ? "new" : result.moved > 0 ? `▲ ${result.moved}` : result.moved < 0 ? `▼ ${-result.moved}` : "=";
  return element("small", { class: "moved", title: "compared with the first system" }, ` ${text}`);
}

function toggle(name, place, make) {
  const holder = element("div", { hidden: true });
  place.append(holder);
  const button = element("button", { type: "button", "aria-expanded": "false" }, name);
  button.addEventListener("click", async () => {
    const open = holder.hidden;
    button.setAttribute("aria-expanded", String(open));
    holder.hidden = !open;
    if (!open || holder.childElementCount) return;
    holder.append(element("p", { class: "quiet" }, "…"));
    try {
      holder.replaceChildren(await make());
    } catch (error) {
      holder.replaceChildren(element("p", { class: "error", role: "alert" }, error.message));
    }
  });
  return button;
}

async function explanationOf(q, docno) {
  const answer = await ask("explain", { q, docno });
  const greatest = Math.max(...answer.parts.map((part) => Math.abs(part.contribution)), 1e-9);
  const rows = answer.parts.map((part) => {
    const bar = element("span", { class: `bar ${part.system === "BM25" ? "words" : ""}` });
    bar.style.width = `${(100 * Math.abs(part.contribution)) / greatest}%`;
    return element("tr", {},
      element("td", { html: part.query_html }), element("td", { html: part.part === "word" ? "" : part.document_html }),
      element("td", { class: "track" }, bar), element("td", { class: "number" }, part.contribution.toFixed(2)));
  });
  const head = element("tr", {}, ...["question", "post", "", "points"].map((name) => element("th", {}, name)));
  const sum = element("tr", {}, element("th", {}, "score"), element("td"), element("td"),
    element("td", { class: "number" }, answer.score.toFixed(2)));
  return element("div", { class: "explanation" },
    element("div", { class: "columns" },
      element("div", { class: "text" }, element("h4", {}, "question"), element("div", { html: answer.query_html })),
      element("div", { class: "text" }, element("h4", {}, "post"), element("div", { html: answer.document_html }))),
    element("div", { class: "scroll" }, element("table", {}, head, ...rows, sum)));
}

async function postOf(docno) {
  const answer = await ask("post", { docno });
  return element("div", { class: "text", html: answer.html });
}

function graphOf(docno) {
  const theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const source = `api/graph/${encodeURIComponent(docno)}.svg?theme=${theme}`;
  return element("div", { class: "graph", tabindex: "0" }, element("img", { src: source, alt: `graph of ${docno}` }));
}

// ---- the box

let timer = 0;
box.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const q = box.value;
    const answer = q.trim() ? await ask("preview", { q }).catch(() => null) : { html: "" };
    if (answer && q === box.value) preview.innerHTML = answer.html;
  }, 150);
});

box.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit();
  }
});

form.addEventListener("submit", (event) => {
  event.preventDefault();
  go({ q: box.value, mode: form.elements.mode.value });
});

function insert(latex) {
  const { selectionStart: start, selectionEnd: end, value } = box;
  const inside = (value.slice(0, start).split("$").length - 1) % 2 === 1 || form.elements.mode.value === "formulas";
  const text = inside || latex.startsWith("$") ? latex : `$${latex.includes("|") ? latex : `${latex}|`}$`;
  const [before, after = ""] = text.split("|");
  const selected = value.slice(start, end);
  box.value = value.slice(0, start) + before + selected + after + value.slice(end);
  box.selectionStart = box.selectionEnd = start + before.length + selected.length;
  box.focus();
  box.dispatchEvent(new Event("input"));
}

for (const [name, latex] of SYMBOLS) {
  const plain = latex.replaceAll("|", "");
  $("symbols").append(element("button", { type: "button", title: plain, "aria-label": plain, onclick: () => insert(latex) }, name));
}

// ---- a formula of a result searches for it

function formulaOf(event) {
  return event.target instanceof Element ? event.target.closest(".formula") : null;
}

results.addEventListener("click", (event) => {
  const formula = formulaOf(event);
  if (formula) go({ q: `$${formula.dataset.latex}$`, mode: "formulas" });
});

document.addEventListener("keydown", (event) => {
  const formula = formulaOf(event);
  if (event.key === "Enter" && formula) formula.click();
  if (event.key === "/" && !(event.target instanceof HTMLTextAreaElement)) {
    event.preventDefault();
    box.focus();
  }
});

addEventListener("popstate", show);

ask("settings", {}).then((answer) => {
  settings = answer;
  $("size").textContent = `${answer.size.toLocaleString()} posts`;
}).finally(show);
