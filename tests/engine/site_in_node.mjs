// Ask the search of a site without a browser: the folder is the argument; formulas and queries are JSON in the input.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = pathToFileURL(`${process.argv[2]}/`);
const load = (name) => import(new URL(name, folder));
const [{ Unread }, { readLatex }, { Terms, addTree }, { TIERS }, { Site, readQuery, wordsOf }] = await Promise.all(
  ["grammar.js", "latex.js", "terms.js", "matching.js", "search.js"].map(load));
const site = new Site(async (name) => new Response(readFileSync(new URL(name, folder))));

// A formula in normal form, such as U!plus(N!1,V!𝑥); operands in any order are sorted as Python sorts them.
function keyOf(latex) {
  const terms = new Terms(), codes = (text) => Array.from(text, (sign) => sign.codePointAt(0).toString(16).padStart(6, "0")).join();
  const root = addTree(terms, readLatex(latex)), written = [];
  for (const [term, label] of terms.labels.entries()) {
    const args = terms.args[term].map((arg) => written[arg]);
    if (label.startsWith("U!")) args.sort((one, other) => (codes(one) < codes(other) ? -1 : 1));
    written.push(args.length ? `${label}(${args})` : label);
  }
  return written[root];
}

function tried(latex) {
  try {
    return { key: keyOf(latex) };
  } catch (error) {
    if (!(error instanceof Unread)) throw error;
    return { error: error.message };
  }
}

async function answered(text) {
  const { hits, problems } = await site.search(text);
  const found = hits.map(async ({ section, score, formulas }) => {
    const { address, title } = await site.section(section);
    return { section, score, address, title, formulas: formulas.filter(Boolean).map(({ place, tier, score }) => ({ place, tier: TIERS[tier], score })) };
  });
  return { hits: await Promise.all(found), problems };
}

const { formulas = [], queries = [], texts = [] } = JSON.parse(readFileSync(0, "utf-8"));
const answers = [];
for (const query of queries) answers.push(await answered(query));
console.log(JSON.stringify({ formulas: formulas.map(tried), answers, words: texts.map(wordsOf), read: queries.map(readQuery) }));
