// Results: a title, a line on where it is from, a snippet, and quiet actions.

import { ask, copy, dateOf, element, errorOf, plural } from "./dom.js";
import { explanationOf, matchOf, postOf } from "./why.js";

export const STEP = 10; // results that are asked for at a time

// The results of an answer, in columns if there are several systems. `more` asks for further results, `weak` for weak ones.
export function columnsOf(answer, state, { more, weak }) {
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
        list.append(element("li", {}, note, resultOf(result, rank, state, system, several ? "h3" : "h2")));
        lists[i].tier = result.tier;
      }
      after.replaceChildren(...[list.childElementCount ? null : nothing(state, system.weak), system.weak ? weakOf(system.weak, list.childElementCount, weak) : null,
        system.more && i === 0 ? moreOf(more, append) : null].filter(Boolean));
    });
    finish(node);
  };
  append(answer);
  return node;
}

function moreOf(more, append) {
  const button = element("button", { type: "button" }, "More results");
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const place = button.closest("section").querySelector("ol"), seen = place.childElementCount;
      append(await more(seen));
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

function resultOf(found, rank, state, system, heading) {
  const result = withPath(found);
  const formulas = state.mode === "formulas";
  const name = result.title_html || element("bdi", {}, result.post_id).outerHTML;
  const title = element("a", { href: result.link || addressOf(state, { post: result.post_id }), html: name });
  if (!result.link) title.dataset.post = result.post_id;
  const article = element("article", { tabindex: "-1", "data-docno": result.docno, "aria-label": `Result ${rank}` });
  const details = element("div"), tools = element("div", { class: "tools" });
  tools.append(toggle("Why?", details, () => formulas ? matchOf(result, article) : explanationOf(state.q, result.docno, system)));
  if (result.link || formulas) tools.append(element("a", { href: addressOf(state, { post: result.post_id }), "data-post": result.post_id }, "Whole post"));
  if (result.parent) tools.append(element("a", { href: addressOf(state, { post: result.parent }), "data-post": result.parent }, "Question"));
  tools.append(...toolsOf(formulas ? { q: `$${result.latex}$`, latex: result.latex } : () => ask("post", { docno: result.docno })));
  article.append(...[
    element(heading, { class: "title", dir: "auto" }, title),
    contextOf(result, formulas ? result.tier : percent(result.match), movedOf(result, rank)),
    element("p", { class: "snippet", dir: "auto", html: result.snippet_html }),
    tools, details,
  ].filter(Boolean));
  return article;
}

// Buttons that search for similar ones and copy the source of a formula or post; a post's is fetched when needed.
export function toolsOf(source) {
  const get = async () => typeof source === "function" ? source().then((post) => ({ q: post.similar, latex: post.latex })) : source;
  const similar = element("button", { type: "button" }, "Similar");
  similar.addEventListener("click", async () => {
    const { q } = await get();
    similar.dispatchEvent(new CustomEvent("search", { bubbles: true, detail: { q } }));
  });
  const button = element("button", { type: "button" }, "Copy LaTeX");
  button.addEventListener("click", async () => {
    const said = await get().then(({ latex }) => copy(latex)).then(() => "Copied", () => "Not copied");
    button.textContent = said;
    setTimeout(() => { button.textContent = "Copy LaTeX"; }, 1500);
  });
  return [similar, button];
}

// Of unrelated posts, how many score lower for a question; rounded down.
const percent = (match) => element("span", { title: "The share of unrelated posts that score lower" }, `match ${(Math.floor(1000 * match + 1e-9) / 10).toFixed(1)} %`);

// One line: file, section, line and date, and how good a match it is.
export function contextOf(result, ...notes) {
  const name = textOf(result.title_html || "");
  const section = (result.section || "").split(" › ").filter((part) => part && part !== name).join(" › ");
  const where = [result.file || (name && !result.kind ? result.post_id : ""), section, result.line ? `line ${result.line}` : "", result.date ? dateOf(result.date) : ""];
  return element("p", { class: "context" }, ...where.filter(Boolean).map((part) => element("bdi", {}, part)), ...notes.filter(Boolean).map((note) => element("span", { class: "note" }, note)));
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
  const wide = formulas.filter((formula) => formula.firstElementChild?.getBoundingClientRect().width > formula.parentElement.clientWidth && formula.parentElement.clientWidth);
  for (const formula of wide) formula.classList.add("wide");
}

addEventListener("resize", () => fit(document));

export function finish(place) {
  requestAnimationFrame(() => fit(place));
  for (const formula of place.querySelectorAll(".formula")) {
    if (formula.closest(QUIET) || formula.tabIndex === 0) continue;
    formula.tabIndex = 0;
    formula.setAttribute("role", "link");
    formula.title = "Search for this formula";
  }
}

const STEPS = [["equal", "equal"], ["renamed", "other letters"], ["instance", "instance of the pattern"], ["similar", "similar"]];

// The four steps of how well a formula matches; nothing where no formula is marked.
export function legendOf(place) {
  if (!place.querySelector(".formula:is(.equal, .renamed, .instance, .similar)")) return null;
  return element("p", { class: "legend" }, "Formulas: ", ...STEPS.map(([kind, name]) => element("span", { class: `formula part-0 ${kind}` }, element("b", {}, "x"), ` ${name}`)));
}
