// Results, and what is opened below one: why it was found, the whole post, its graph.

import { ask, element, errorOf } from "./dom.js";

let made = 0; // for ids of what a button opens

export function columnsOf(answer, state, showWeak) {
  const several = answer.systems.length > 1;
  const columns = answer.systems.map((system) => {
    const list = element("section", { "aria-label": system.name });
    if (several) list.append(element("h2", {}, system.name, " ", element("small", {}, `${system.milliseconds} ms`)));
    const items = system.results.map((result, i) => element("li", {}, resultOf(result, i + 1, state, system)));
    if (state.mode === "formulas" && items.length) list.append(legend());
    if (items.length) list.append(element("ol", { class: "results" }, ...items));
    else if (!system.weak) list.append(nothing(state));
    if (system.weak) list.append(weakOf(system.weak, items.length, showWeak));
    return list;
  });
  return element("div", { class: several ? "columns several" : "columns" }, ...columns);
}

function nothing(state) {
  const advice = state.mode === "formulas"
    ? "No formula is like it. A shorter formula finds more."
    : "No post has any of these words or symbols. Try other words, or a formula alone.";
  return element("p", { class: "quiet" }, advice);
}

function weakOf(count, good, showWeak) {
  const text = good ? "The other posts are no better matches than a random one may be. " : "No good match. ";
  return element("p", { class: "quiet" }, text,
    element("button", { type: "button", onclick: showWeak }, good ? `Show ${count} weak match${count === 1 ? "" : "es"}` : "Show the closest"));
}

function resultOf(result, rank, state, system) {
  const formulas = state.mode === "formulas";
  const title = result.title_html ? element("span", { html: result.title_html }) : `Post ${result.post_id}`;
  const article = element("article", { tabindex: "-1", "data-docno": result.docno });
  article.append(...[
    element("h3", {}, title),
    element("p", { class: "meta" }, `${rank}. ${formulas ? `${result.tier} · formula ` : `match ${percent(result.match)} · `}${result.docno}`, movedOf(result, rank)),
    placeOf(result),
    element("p", { class: "snippet", html: result.snippet_html }),
    formulas && result.substitution.length ? substitutionOf(result.substitution) : null,
  ].filter(Boolean));
  const tools = element("div", { class: "tools" }), details = element("div");
  if (!formulas) tools.append(toggle("Why?", details, () => explanationOf(state.q, result.docno, system)));
  tools.append(toggle("Whole post", details, () => postOf(result.post_id, state.q)));
  tools.append(toggle("Graph", details, () => graphOf(result.post_id)));
  article.append(tools, details);
  return article;
}

// Of unrelated posts, how many score lower for a question; rounded down.
const percent = (match) => `${(Math.floor(1000 * match + 1e-9) / 10).toFixed(1)} %`;

// Where the post was read; a link where the server was given a template of links.
function placeOf(result) {
  if (!result.file) return null;
  const place = result.line ? `${result.file}:${result.line}` : result.file;
  return element("p", { class: "meta place" }, result.link ? element("a", { href: result.link }, place) : place,
    result.section ? element("bdi", {}, ` — ${result.section}`) : null);
}

// What letters and wildcards of the query stand for.
function substitutionOf(pairs) {
  const rows = pairs.map((pair) => element("tr", {}, element("td", { html: pair.name_html }), element("td", { html: pair.value_html })));
  const head = element("tr", {}, ...["in the query", "here"].map((name) => element("th", { scope: "col" }, name)));
  return element("table", { class: "substitution" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

const LEGEND = [["part-2", "equal"], ["part-1", "other letters"], ["part-4", "instance"], ["part-0", "contains the query"], ["part-w", "similar"]];

function legend() {
  return element("p", { class: "legend quiet" }, ...LEGEND.map(([kind, name]) => element("mark", { class: kind }, name)));
}

function movedOf(result, rank) {
  const before = result.rank_in_first;
  if (before === undefined) return null;
  if (before === null) return element("span", { class: "moved up", title: "not among the first system's 1,000" }, "new");
  if (before === rank) return element("span", { class: "moved" }, "same rank");
  const up = before > rank;
  return element("span", { class: up ? "moved up" : "moved down" }, `${up ? "▲" : "▼"} ${Math.abs(before - rank)} from rank ${before}`);
}

function toggle(name, place, make) {
  const holder = element("div", { id: `opened-${made++}`, hidden: true });
  place.append(holder);
  const button = element("button", { type: "button", "aria-expanded": "false", "aria-controls": holder.id }, name);
  button.addEventListener("click", async () => {
    const open = holder.hidden;
    button.setAttribute("aria-expanded", String(open));
    holder.hidden = !open;
    if (!open || (holder.childElementCount && !holder.querySelector(".error"))) return;
    holder.replaceChildren(element("p", { class: "quiet", role: "status" }, "loading …"));
    try {
      holder.replaceChildren(await make());
      markFormulas(holder);
    } catch (error) {
      holder.replaceChildren(errorOf(error));
    }
  });
  return button;
}

// ---- why

const SHOWN = 8;
const MEANING = { word: "word", symbols: "symbols", formula: "formula", sentence: "sentence", document: "whole text" };

async function explanationOf(q, docno, system) {
  const answer = await ask("explain", { q, docno, system: system.key });
  return element("div", { class: "explanation" },
    sharesOf(answer),
    element("div", { class: "columns" }, textOf("Question", answer.query_html), textOf("Post", answer.document.html, ...beyond(answer.document))),
    tableOf(answer));
}

const counted = (count, more = "") => `${count.toLocaleString("en")}${more} character${count === 1 ? "" : "s"}`;

// What of a long post is not shown; with buttons where it can be read.
function beyond(piece, read) {
  const noteOf = (text, name, start) => element("p", { class: "quiet" }, text, read ? " " : null,
    read ? element("button", { type: "button", onclick: () => read(start) }, name) : null);
  const before = piece.start, after = piece.characters - piece.end;
  return [
    before ? noteOf(`… ${counted(before)} before this`, "Read what comes before", Math.max(0, before - 50_000)) : null,
    after ? noteOf(`… the post goes on: ${counted(after, " more")}`, "Read on", piece.end) : null,
  ];
}

function textOf(name, html, ...notes) {
  return element("section", {}, element("h4", {}, name), element("div", { class: "text", tabindex: "0", role: "group", "aria-label": name, html }), ...notes);
}

function kindOf(part) {
  return part.system === "BM25" ? "words" : "meaning";
}

function sharesOf(answer) {
  const points = { words: 0, meaning: 0 };
  for (const part of answer.parts) points[kindOf(part)] += part.contribution;
  const of = (kind, name) => points[kind] ? [element("span", { class: `key ${kind}` }), `${name} ${points[kind].toFixed(2)}`] : [];
  return element("p", { class: "shares" }, `Score ${answer.score.toFixed(2)}: `,
    ...of("words", "words and symbols"), points.words && points.meaning ? " + " : null, ...of("meaning", "meaning"));
}

function numberOf(points) {
  return element("span", { class: "number" }, points.toFixed(2));
}

function tableOf(answer) {
  const greatest = Math.max(...answer.parts.map((part) => Math.abs(part.contribution)), 1e-9);
  const row = (part, i) => {
    const bar = element("span", { class: `bar ${kindOf(part)}` });
    bar.style.width = `calc((100% - var(--beside)) * ${Math.abs(part.contribution) / greatest})`; // the number is beside it
    return element("tr", { hidden: i >= SHOWN },
      element("td", { class: "kind" }, MEANING[part.part] || part.part),
      element("td", { "data-name": "question", html: part.query_html }),
      element("td", { "data-name": "post", html: part.part === "word" ? "" : part.document_html }),
      element("td", { class: "points" }, bar, numberOf(part.contribution)));
  };
  const sumOf = (name, value) => element("tr", {},
    element("td", { class: "kind" }), element("th", { colspan: "2", scope: "row" }, name), element("td", { class: "points" }, numberOf(value)));
  const head = element("tr", {}, ...["part", "in the question", "in the post", "points"].map((name) => element("th", { scope: "col" }, name)));
  const rows = answer.parts.map(row);
  const last = [sumOf("score", answer.score)];
  if (answer.rest.parts) last.unshift(sumOf(`${answer.rest.parts} smaller parts`, answer.rest.contribution));
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows), element("tfoot", {}, ...last));
  const more = element("button", { type: "button", hidden: rows.length <= SHOWN }, `${rows.length - SHOWN} more parts`);
  more.addEventListener("click", () => {
    for (const each of rows) each.hidden = false;
    more.remove();
  });
  return element("div", { class: "scroll" }, table, more);
}

// ---- the whole post, its graph

async function postOf(docno, q) {
  const place = element("div");
  const show = async (asked) => {
    const answer = await ask("post", { docno, q, ...asked });
    const text = element("div", { class: "text", tabindex: "0", role: "group", "aria-label": "Whole post", html: answer.html });
    const [before, after] = beyond(answer, (start) => show({ start }).catch((error) => place.append(errorOf(error))));
    place.replaceChildren(...[before, text, after].filter(Boolean));
    markFormulas(place);
  };
  await show({});
  return place;
}

function graphOf(docno) {
  const theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const source = `api/graph/${encodeURIComponent(docno)}.svg?theme=${theme}`;
  return new Promise((resolve, reject) => {
    const image = element("img", { src: source, alt: `Graph of post ${docno}` });
    image.addEventListener("load", () => resolve(element("div", {},
      element("div", { class: "graph", tabindex: "0", role: "group", "aria-label": "Graph" }, image),
      element("p", {}, element("a", { href: source, target: "_blank" }, "Open the graph on a page of its own")))));
    image.addEventListener("error", () => reject(new Error("The graph could not be drawn.")));
  });
}

// ---- formulas of results are links to a search for them

export function markFormulas(place) {
  for (const formula of place.querySelectorAll(".formula")) {
    formula.tabIndex = 0;
    formula.setAttribute("role", "link");
    formula.title = `Search for ${formula.dataset.latex}`;
  }
}
