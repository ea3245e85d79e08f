// Results: a title, a line on where it is from, a snippet, and quiet actions.

import { $, ask, copy, dateOf, element, errorOf, plural } from "./dom.js";
import { explanationOf, matchOf, postOf } from "./why.js";

export const STEP = 10; // results that are asked for at a time

// The results of an answer to `q`, in columns if there are several systems. `more` asks for further results, `weak` for weak ones.
export function columnsOf(answer, q, state, { more, weak }) {
  const several = answer.systems.length > 1, node = element("div", { class: several ? "columns several" : "columns" });
  const lists = answer.systems.map((system) => {
    const section = element("section", { "aria-label": system.name }), list = element("ol", { class: "results" });
    if (several) section.append(element("h2", {}, system.name, " ", element("small", {}, `${system.milliseconds} ms`)));
    section.append(list, element("div", { class: "after" }));
    return { section, list, system, after: section.lastChild, tier: "" };
  });
  node.append(...lists.map(({ section }) => section));

  const append = (found) => {
    found.systems.forEach((system, i) => {
      const { list, after } = lists[i];
      for (const result of system.results) {
        const begins = result.tier === "similar" && lists[i].tier !== "similar", rank = list.childElementCount + 1;
        const note = begins ? element("p", { class: "note" }, `No ${rank > 1 ? "other " : ""}formula matches. These are similar.`) : null;
        list.append(element("li", {}, note, resultOf(result, rank, q, state, system, several ? "h3" : "h2")));
        lists[i].tier = result.tier;
      }
      after.replaceChildren(...[list.childElementCount ? null : nothing(state, system.weak), system.weak ? weakOf(system.weak, list.childElementCount, weak) : null,
        system.more && i === 0 ? moreOf(more, append) : null].filter(Boolean));
    });
    finish(node);
    $("legend").replaceChildren(...kindsOf(node));
  };
  append(answer);
  return node;
}

// Words of a question that no post has, and the question that was searched or may be searched instead.
export function suggestedOf({ suggestions }) {
  if (!suggestions) return null;
  const { words, corrected, replaced } = suggestions;
  const link = element("a", { href: addressOf({}, { q: corrected }), "data-q": corrected }, corrected);
  const then = replaced ? ["Searched for ", element("b", {}, corrected), " instead."] : ["Search for ", link];
  return element("p", { class: "note", id: "suggested", dir: "auto" }, `No post has ${words.map(({ word }) => `“${word}”`).join(", ")}. `, ...then);
}

function moreOf(more, append) {
  const button = element("button", { type: "button" }, "More results");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const place = button.closest("section").querySelector("ol"), seen = place.childElementCount;
      append(await more());
      place.children[seen]?.querySelector("article").focus();
    } catch (error) {
      button.replaceWith(errorOf(error));
    }
  });
  return button;
}

function nothing(state, weak) {
  const advice = state.mode === "formulas" ? "No formula is like this one. A shorter formula finds more."
    : weak ? "No post matches clearly better than a random one." : "No post has any of these words or symbols. Try other words, or only a formula.";
  return element("div", { class: "nothing" }, element("p", { class: "title" }, "No good match"), element("p", {}, advice));
}

function weakOf(count, good, show) {
  return element("p", { class: "note" }, good ? "The other posts may be no better than random ones. " : null,
    element("button", { type: "button", onclick: show }, good ? `Show ${count} weak match${count === 1 ? "" : "es"}` : "Show the closest"));
}

export const addressOf = (state, changes) => {
  const parameters = new URLSearchParams(Object.entries({ ...state, ...changes }).filter(([, value]) => value));
  return `${location.pathname}?${parameters}`;
};

const textOf = (html) => element("div", { html }).textContent.trim();

// A file without a heading has its own name as a title; then its path is more useful.
function withPath(result) {
  const isName = result.file && `/${result.file}`.includes(`/${textOf(result.title_html)}.`);
  return isName ? { ...result, title_html: element("bdi", {}, result.file).outerHTML, file: "" } : result;
}

function resultOf(found, rank, q, state, system, heading) {
  const result = withPath(found);
  const formulas = state.mode === "formulas";
  const name = result.title_html || element("bdi", {}, result.post_id).outerHTML;
  const title = element("a", { href: result.link || addressOf(state, { post: result.post_id }), html: name });
  if (!result.link) title.dataset.post = result.post_id;
  const article = element("article", { tabindex: "-1", "data-docno": result.docno, "aria-label": `Result ${rank}` });
  const details = element("div"), tools = element("div", { class: "tools" });
  tools.append(toggle("Why?", details, () => formulas ? matchOf(result, article) : explanationOf(q, result, system)));
  if (result.link || formulas) tools.append(element("a", { href: addressOf(state, { post: result.post_id }), "data-post": result.post_id }, "Whole post"));
  if (result.parent) tools.append(element("a", { href: addressOf(state, { post: result.parent }), "data-post": result.parent }, "Question"));
  tools.append(...(formulas ? toolsOf(similarTo({ q: `$${result.latex}$` }), async () => result.latex)
    : toolsOf(similarTo({ like: result.post_id }), () => ask("post", { docno: result.docno }).then(({ latex }) => latex))));
  article.append(...[
    element(heading, { class: "title", dir: "auto" }, title),
    snippetOf(result, title),
    element("div", { class: "foot" }, contextOf(result, formulas ? TIERS[result.tier] : strengthOf(result), movedOf(result, rank)), tools),
    details,
  ].filter(Boolean));
  return article;
}

// A part of a post, and its other formulas that neither the title nor this part shows.
function snippetOf({ snippet_html, others = [] }, title) {
  const snippet = snippet_html ? element("span", { html: snippet_html }) : null, above = [title, snippet].filter(Boolean);
  const shown = new Set(above.flatMap((part) => [...part.querySelectorAll(".formula")]).map((formula) => formula.dataset.latex));
  const more = others.filter(({ latex }) => !shown.has(latex));
  const also = more.length ? element("span", { class: "others" }, " Also ", ...more.flatMap(({ html }) => [element("span", { html }), " "])) : null;
  return snippet || also ? element("p", { class: "snippet", dir: "auto" }, snippet, also) : null;
}

// The state of a search for similar posts or formulas, as an address and for the page.
export const similarTo = (state) => ({ href: addressOf({}, state), ...Object.fromEntries(Object.entries(state).map(([name, value]) => [`data-${name}`, value])) });

// A link to similar ones, and a button that copies the source of a formula or post.
export function toolsOf(similar, source) {
  const button = element("button", { type: "button" }, "Copy LaTeX");
  button.addEventListener("click", async () => {
    const said = await source().then(copy).then(() => "Copied", () => "Not copied");
    button.textContent = said;
    setTimeout(() => { button.textContent = "Copy LaTeX"; }, 1500);
  });
  return [element("a", similar, "Similar"), button];
}

const TIERS = {
  equal: "same formula", renamed: "other letters", instance: "instance", contains: "contains it", "contains, renamed": "contains it with other letters",
  "contains, instance": "contains an instance", similar: "similar",
};
const STRENGTHS = [[0.99, "strong"], [0.9, "good"], [0, "weak"]];

// Of unrelated posts, how many score lower for a question; rounded down.
export const percentOf = (match) => `${(Math.floor(1000 * match + 1e-9) / 10).toFixed(1)} %`;
export const wordOf = (match) => STRENGTHS.find(([least]) => match >= least)[1];

const strengthOf = ({ match, named }) => named ? element("span", { title: "The question is its name" }, "named")
  : element("span", { title: "The share of unrelated posts that score lower" }, `${wordOf(match)} match, ${percentOf(match)}`);

// One line: file, section, line and date, and how good a match it is.
export function contextOf(result, ...notes) {
  const name = textOf(result.title_html || "");
  const section = (result.section || "").split(" › ").filter((part) => part && part !== name).join(" › ");
  const where = [result.file || (name && !result.kind ? result.post_id : ""), section, result.line ? `line ${result.line}` : "", result.date ? dateOf(result.date) : ""];
  return element("p", { class: "context" }, ...notes.filter(Boolean).map((note) => element("span", { class: "note" }, note)), ...where.filter(Boolean).map((part) => element("bdi", {}, part)));
}

function movedOf(result, rank) {
  const before = result.rank_in_first;
  if (before === undefined) return null;
  if (before === null) return element("span", { class: "moved up", title: "not among the first system's 1,000" }, "new");
  if (before === rank) return element("span", { class: "moved" }, "same rank");
  const up = before > rank;
  return element("span", { class: up ? "moved up" : "moved down" }, `${up ? "▲" : "▼"} ${Math.abs(before - rank)} from rank ${before}`);
}

let made = 0; // for ids of what a button opens

export function toggle(name, place, make) {
  const holder = element("div", { id: `opened-${made++}`, hidden: true });
  place.append(holder);
  const button = element("button", { type: "button", "aria-expanded": "false", "aria-controls": holder.id }, name);
  button.addEventListener("click", async () => {
    const open = holder.hidden;
    button.setAttribute("aria-expanded", String(open));
    holder.hidden = !open;
    if (!open || (holder.childElementCount && !holder.querySelector(".error"))) return;
    holder.replaceChildren(element("p", { class: "note", role: "status" }, "loading …"));
    try {
      holder.replaceChildren(await make());
      finish(holder);
    } catch (error) {
      holder.replaceChildren(errorOf(error));
    }
  });
  return button;
}

// ---- formulas of results are links to a search for them; what is too wide scrolls in place

const QUIET = "a, button, .formula .formula, #preview";

export function fit(place) {
  const formulas = [...place.querySelectorAll(".formula")].filter((formula) => !formula.closest("a, .legend"));
  for (const formula of formulas) formula.classList.remove("wide");
  const wide = formulas.filter((formula) => formula.firstElementChild?.getBoundingClientRect().width > roomOf(formula.parentElement));
  for (const formula of wide) {
    formula.classList.add("wide");
    if (formula.hasAttribute("tabindex")) formula.tabIndex = 0; // arrows scroll it
  }
}

// The width of the block around inline elements, which have none; of what is not shown, any.
const roomOf = (node) => !node || !node.checkVisibility() ? Infinity : node.clientWidth || roomOf(node.parentElement);

addEventListener("resize", () => fit(document));

// The formulas of a result are one stop of Tab; arrows lead to the others.
export function finish(place) {
  requestAnimationFrame(() => fit(place));
  const reached = new Set([...place.querySelectorAll(".formula[tabindex='0']")].map(stopOf));
  for (const formula of place.querySelectorAll(".formula")) {
    if (formula.closest(QUIET) || formula.hasAttribute("tabindex")) continue;
    formula.tabIndex = reached.has(stopOf(formula)) ? -1 : 0;
    reached.add(stopOf(formula));
    formula.setAttribute("role", "link");
    formula.title = "Search for this formula";
  }
}

const stopOf = (formula) => formula.closest(".explanation, article");

export function stepFormula(formula, forward) {
  const formulas = [...stopOf(formula).querySelectorAll(".formula[tabindex]")].filter((each) => stopOf(each) === stopOf(formula) && each.checkVisibility());
  const next = formulas[formulas.indexOf(formula) + (forward ? 1 : -1)];
  if (!next) return;
  formula.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

const KINDS = [
  [".equal:not(.has-matched)", "the same formula", "equal"], [".renamed:not(.has-matched)", "other letters", "renamed"],
  [".instance:not(.has-matched)", "instance of the pattern", "instance"], [".has-matched", "contains it", "equal has-matched"], [".similar", "similar", "similar"],
];

// The kinds of matches of formulas that occur in a place; all of them without one.
export function kindsOf(place) {
  return KINDS.filter(([kind]) => !place || place.querySelector(`.formula${kind}`)).map(([, name, kind]) => {
    const letter = element("b", {}, "x"), inside = kind.endsWith("has-matched");
    if (inside) letter.className = "matched";
    return element("span", { class: `formula part-0 ${kind}` }, inside ? element("span", {}, element("b", {}, "y+"), letter) : letter, ` ${name}`);
  });
}
