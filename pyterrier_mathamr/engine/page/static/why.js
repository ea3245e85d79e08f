// The panels of a result: why it was found, with its graph, and the whole post.

import { ask, element, errorOf } from "./dom.js";
import { addressOf, contextOf, finish, percentOf, similarTo, toggle, toolsOf, wordOf } from "./results.js";

const SHOWN = 8;
const MEANING = { word: "word", symbols: "symbols", formula: "formula", sentence: "sentence", document: "whole text", name: "name" };

export async function explanationOf(q, { docno, match }, system) {
  const answer = await ask("explain", { q, docno, system: system.key });
  const graph = element("div");
  return element("div", { class: "explanation" },
    reasonsOf(answer),
    element("p", { class: "note" }, `A ${wordOf(match)} match: ${percentOf(match)} of unrelated posts score lower.`),
    element("div", { class: "columns" }, textOf("Question", docno, answer.query_html), textOf("Post", docno, answer.document.html, ...beyond(answer.document))),
    element("details", { class: "adding" }, element("summary", {}, "How the score adds up"), sharesOf(answer), tableOf(answer)),
    element("p", {}, toggle("Graph of the post", graph, () => graphOf(docno))), graph);
}

const SAME = [["equal", "the same formula"], ["renamed", "with other letters the formula"], ["instance", "an instance of the formula"], ["similar", "a formula similar to"]];

// A sentence on what the question and the post share: formulas by how well they match, and words.
function reasonsOf(answer) {
  const html = (source) => element("div", { html: source }), query = html(answer.query_html), positive = answer.parts.filter(({ contribution }) => contribution > 0);
  const reasons = [], seen = new Set();
  for (const part of positive) {
    const found = html(part.document_html).firstElementChild, asked = html(part.query_html).firstElementChild;
    if (!["symbols", "formula"].includes(part.part) || !found || !asked?.dataset.latex || seen.has(asked.dataset.latex)) continue;
    const kind = SAME.findIndex(([name]) => found.classList.contains(name));
    if (kind < 0) continue;
    seen.add(asked.dataset.latex);
    reasons.push([kind, element("span", {}, `${SAME[kind][1]} `, asked)]);
  }
  reasons.sort(([kind], [other]) => kind - other);
  const words = new Map();
  for (const mark of positive.filter(({ part }) => part === "word").flatMap((part) => [...html(part.query_html).querySelectorAll("mark")])) {
    const color = mark.className === "part-w" ? null : query.querySelector(`mark.${mark.className}`);
    const word = (color || mark).cloneNode(true);
    words.set(word.textContent.toLowerCase(), word);
  }
  const listed = [...words.values()].flatMap((word, i) => i ? [", ", word] : [word]);
  const parts = [...reasons.map(([, reason]) => reason), ...(listed.length ? [element("span", {}, words.size > 1 ? "the words " : "the word ", ...listed)] : [])];
  const named = positive.some(({ part }) => part === "name") ? "The question is its name. " : "";
  return element("p", { class: "reasons" }, named, ...(parts.length ? ["In both: ", ...parts.flatMap((part, i) => i ? ["; ", part] : [part]), "."]
    : ["The post has no word or formula of the question; its meaning is similar."]));
}

// ---- why a formula was found

const TIERS = {
  equal: "It is the formula of the query.",
  renamed: "It is the formula of the query with other letters.",
  instance: "It is an instance of the query: each wildcard matches a part of it.",
  contains: "A part of it is the formula of the query.",
  "contains, renamed": "A part of it is the formula of the query with other letters.",
  "contains, instance": "A part of it is an instance of the query: each wildcard matches an expression.",
  similar: "No part of it matches the query; it shares symbols and structure with it.",
};

export function matchOf(result, article) {
  const drawn = [...article.querySelectorAll(".title .formula, .snippet .formula")].find((formula) => formula.dataset.latex === result.latex);
  const found = drawn?.cloneNode(true) || element("code", {}, result.latex);
  const rows = result.substitution.map((pair) => element("tr", {}, element("td", { html: pair.name_html }), element("td", { html: pair.value_html })));
  const head = element("tr", {}, ...["in the query", "here"].map((name) => element("th", { scope: "col" }, name)));
  return element("div", { class: "explanation" }, element("p", {}, TIERS[result.tier] || result.tier), element("p", { class: "found" }, found),
    rows.length ? element("table", { class: "substitution" }, element("thead", {}, head), element("tbody", {}, ...rows)) : null);
}

// ---- why a post was found

const counted = (count, more = "") => `${count.toLocaleString("en")}${more} character${count === 1 ? "" : "s"}`;

// What of a long post is not shown; with buttons where it can be read.
function beyond(piece, read) {
  const noteOf = (text, name, start) => element("p", { class: "note" }, text, read ? " " : null,
    read ? element("button", { type: "button", onclick: () => read(start) }, name) : null);
  const before = piece.start, after = piece.characters - piece.end;
  return [
    before ? noteOf(`… ${counted(before)} before this`, "Read what comes before", Math.max(0, before - 50_000)) : null,
    after ? noteOf(`… the post goes on: ${counted(after, " more")}`, "Read on", piece.end) : null,
  ];
}

function textOf(name, docno, html, ...notes) {
  return element("section", {}, element("p", { class: "name" }, name), element("div", { class: "text", tabindex: "0", role: "region", "aria-label": `${name}, ${docno}`, html }), ...notes);
}

function kindOf(part) {
  return part.part === "name" ? "named" : part.system === "BM25" ? "words" : "meaning";
}

function sharesOf(answer) {
  const points = { named: 0, words: 0, meaning: 0 }, names = { named: "name", words: "words and symbols", meaning: "meaning" };
  for (const part of answer.parts) points[kindOf(part)] += part.contribution;
  const shares = Object.keys(points).filter((kind) => points[kind]);
  return element("p", { class: "shares" }, `Score ${answer.score.toFixed(2)}: `,
    ...shares.flatMap((kind, i) => [i ? " + " : "", element("span", { class: `key ${kind}` }), `${names[kind]} ${points[kind].toFixed(2)}`]));
}

function numberOf(points) {
  return element("span", { class: "number" }, points.toFixed(2));
}

function tableOf(answer) {
  const greatest = Math.max(...answer.parts.map((part) => Math.abs(part.contribution)), 1e-9);
  const row = (part, i) => {
    const bar = element("span", { class: `bar ${kindOf(part)}` });
    bar.style.width = `calc((100% - var(--number)) * ${Math.abs(part.contribution) / greatest})`; // the number is next to it
    return element("tr", { hidden: i >= SHOWN },
      element("td", { class: "kind" }, MEANING[part.part] || part.part),
      element("td", { dir: "auto", html: part.query_html }),
      element("td", { dir: "auto", html: part.part === "word" ? "" : part.document_html }),
      element("td", { class: "points" }, bar, numberOf(part.contribution)));
  };
  const sumOf = (name, value) => element("tr", {},
    element("td", { class: "kind" }), element("th", { colspan: "2", scope: "row" }, name), element("td", { class: "points" }, numberOf(value)));
  const head = element("tr", {}, ...["part", "in the question", "in the post", "points"].map((name, i) => element("th", { scope: "col", class: !i && "kind" }, name)));
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

export async function postOf(docno, q, back) {
  const first = await ask("post", { docno, q }), place = element("div");
  const show = (answer) => {
    const text = element("div", { class: "whole", html: answer.html });
    const [before, after] = beyond(answer, (start) => ask("post", { docno, q, start }).then(show).catch((error) => place.append(errorOf(error))));
    text.querySelector("p.title")?.remove(); // the heading has it
    place.replaceChildren(...[before, text, after].filter(Boolean));
    finish(place);
  };
  show(first);
  const tools = element("div", { class: "tools" }, ...toolsOf(similarTo({ like: docno }), async () => first.latex));
  if (first.link) tools.prepend(element("a", { href: first.link }, "Open the source"));
  if (first.parent) tools.prepend(element("a", { href: addressOf({ q }, { post: first.parent }), "data-post": first.parent }, "Question"));
  return element("article", { class: "post" }, back, element("h2", { class: "title", dir: "auto", html: first.title_html || docno }), contextOf({ ...first, post_id: docno }), place, tools);
}

function graphOf(docno) {
  const theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const source = `api/graph/${encodeURIComponent(docno)}.svg?theme=${theme}`;
  return new Promise((resolve, reject) => {
    const image = element("img", { src: source, alt: `Graph of post ${docno}` });
    image.addEventListener("load", () => resolve(element("div", {},
      element("div", { class: "graph", tabindex: "0", role: "region", "aria-label": `Graph, ${docno}` }, image),
      element("p", {}, element("a", { href: source, target: "_blank" }, "Open the graph in a new tab")))));
    image.addEventListener("error", () => reject(new Error("The graph could not be drawn.")));
  });
}
