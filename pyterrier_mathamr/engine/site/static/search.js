// A search of the site: which sections have the words and the formulas of a query. Reads files by a function, so that
// it runs in any JavaScript.

import { Unread } from "./grammar.js";
import { Formulas, readPattern } from "./matching.js";
import { STOP_WORDS as STOPS } from "./symbols.js";

const K1 = 1.2, B = 0.75;
const STOP_WORDS = new Set(STOPS);

// The words and formulas of a query; one that looks like a formula needs no dollars.
export function readQuery(text) {
  const parts = text.split(/\$+/), words = [], formulas = [];
  if (parts.length === 1 && looksLikeFormula(text)) return { words, formulas: [text.trim()] };
  for (const [place, part] of parts.entries()) {
    if (place % 2 === 0) words.push(...wordsOf(part));
    else if (part.trim()) formulas.push(part.trim());
  }
  return { words: [...new Set(words)], formulas };
}

function looksLikeFormula(text) {
  const plain = text.replace(/\\[a-zA-Z]+(?:\s*\{[a-zA-Z]+\})?/g, " \\ ");
  return /[\\^_=<>+*/|(]|\?[a-zA-Z]|\p{Sm}/u.test(plain) && !/\p{L}{2}/u.test(plain.replace(/\?(?=[a-zA-Z])/g, " "));
}

export function wordsOf(text) {
  const found = text.normalize("NFKC").toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return found.filter((word) => !STOP_WORDS.has(word)).map(singular);
}

export function singular(word) {
  if (word.length < 4 || !word.endsWith("s") || /(?:ss|us|is|ices|series)$/.test(word)) return word;
  if (word.endsWith("ies")) return `${word.slice(0, -3)}y`;
  return word.slice(0, /(?:sses|xes|ches|shes)$/.test(word) ? -2 : -1);
}

export class Site {
  // `read(name, build)` returns a file as a Response; without a build it is the newest one.
  constructor(read) {
    this.read = read;
    this.files = new Map();
  }

  file(name) {
    if (!this.files.has(name)) {
      const failed = (error) => {
        this.files.delete(name);
        throw error;
      };
      this.files.set(name, this.load(name).catch(failed));
    }
    return this.files.get(name);
  }

  async load(name) {
    if (name === "formulas") return new Formulas(await this.packed("formulas.bin"));
    if (name !== "index") return this.packed(`${name}.bin`);
    const about = await (await this.read("index.json")).json();
    about.average = about.lengths.reduce((sum, length) => sum + length, 0) / about.lengths.length;
    return about;
  }

  async packed(name) {
    const { build } = await this.file("index");
    return new Response((await this.read(name, build)).body.pipeThrough(new DecompressionStream("deflate"))).json();
  }

  // The sections that have something of a query, the best first: `section`, `score`, `formulas` (of each formula of the
  // query the best `score`, `tier` and `place` in the section), and the formulas that cannot be read, with the reason.
  async search(text) {
    const query = readQuery(text), { lengths } = await this.file("index"), problems = [];
    const found = new Map();
    const at = (section) => {
      if (!found.has(section)) found.set(section, { section, score: 0, formulas: [] });
      return found.get(section);
    };
    const words = query.words.length ? await this.searchWords(query.words) : new Map();
    const best = Math.max(...words.values(), 0);
    for (const [section, score] of words) at(section).score += score / best;
    if (query.formulas.length) {
      const formulas = await this.file("formulas");
      for (const [number, latex] of query.formulas.entries()) {
        try {
          const scores = formulas.search(readPattern(latex, formulas));
          for (const [section, expressions] of formulas.sections.entries()) {
            const score = expressions.reduce((best, expression) => (scores[expression] > best ? scores[expression] : best), 0);
            if (score) at(section).formulas[number] = { score, tier: Math.floor(score), place: expressions.findIndex((expression) => scores[expression] === score) };
          }
        } catch (error) {
          if (!(error instanceof Unread || error instanceof RangeError)) throw error;
          problems.push({ latex, message: error instanceof Unread ? error.message : "It is nested too deeply" });
        }
      }
      for (const hit of found.values()) for (const match of hit.formulas) hit.score += match ? match.score / 7 : 0;
    }
    const hits = [...found.values()].sort((a, b) => b.score - a.score || lengths[a.section] - lengths[b.section] || a.section - b.section);
    return { query, hits, problems };
  }

  async searchWords(words) {
    const { words: firsts, lengths, average } = await this.file("index"), scores = new Map();
    const shards = await Promise.all(words.map((word) => this.file(`words-${Math.max(0, lastAtMost(firsts, word))}`)));
    for (const [number, word] of words.entries()) {
      const postings = Object.hasOwn(shards[number], word) ? shards[number][word] : [], count = postings.length / 2;
      const idf = Math.log(1 + (lengths.length - count + 0.5) / (count + 0.5));
      for (let at = 0, section = 0; at < postings.length; at += 2) {
        section += postings[at];
        const times = postings[at + 1], weight = times + K1 * (1 - B + (B * lengths[section]) / average);
        scores.set(section, (scores.get(section) ?? 0) + (idf * times * (K1 + 1)) / weight);
      }
    }
    return scores;
  }

  // Address, titles, text and formulas of a section.
  async section(number) {
    const { texts } = await this.file("index"), shard = lastAtMost(texts, number);
    const [address, page, title, text, formulas] = (await this.file(`texts-${shard}`))[number - texts[shard]];
    return { address, page, title, text, formulas };
  }
}

function lastAtMost(ascending, value) {
  let low = -1, high = ascending.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (ascending[middle] <= value) low = middle;
    else high = middle;
  }
  return low;
}
