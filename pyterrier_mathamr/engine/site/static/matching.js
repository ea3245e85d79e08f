// The formulas of a site, and how a pattern matches them. It follows sparse/patterns.py and formula/matching.py: tiers
// and scores are those of Python's PatternIndex.

import { ASSOCIATIVE, CHAIN, LINES, RELATIONS, TRANSITIVE, Terms, addTree, isLetter, isWildcard } from "./terms.js";
import { Unread } from "./grammar.js";
import { readLatex } from "./latex.js";

const INSIDE = 0, SIDE = 1, STATEMENT = 2, WHOLE = 3;
export const TIERS = ["similar", "contains, instance", "contains, renamed", "contains", "instance", "renamed", "equal"];
const INSTANCE = 4, RENAMED = 5, EQUAL = 6;
const MOST_STEPS = 10_000, STEPS_OF_ONE = 2_000, MOST_RUN = 8, SHORT_RUN = 4;
const LEAST = 0.999;

export function readPattern(latex, formulas) {
  const pattern = new Terms(formulas.terms);
  pattern.root = addTree(pattern, readLatex(latex));
  if (isWildcard(pattern.labels[pattern.root])) throw new Unread("A wildcard matches everything: put it into a formula");
  return pattern;
}

export class Formulas {
  // `labels`; `terms`: as they are written, for each its label, the number of its operands, and how far before it each is;
  // `expressions`: of each how many lines and other terms it has, then these and the whole; `sections`: of each the
  // expression of each formula in it, -1 for one that has none.
  constructor({ labels, terms, expressions, sections }) {
    this.terms = new Terms();
    const written = []; // terms with operands in another order are the same
    for (let at = 0; at < terms.length;) {
      const label = labels[terms[at++]], count = terms[at++], place = written.length;
      const args = terms.slice(at, at += count).map((distance) => written[place - distance]);
      written.push({ label, args, term: this.terms.add(label, args.map(({ term }) => term)) });
    }
    this.roots = [];
    this.postings = []; // of each term: four times the expression, and the extent in it
    this.extents = []; // the greatest that each term has
    for (let at = 0; at < expressions.length;) {
      const [lines, others] = expressions.slice(at, at += 2), some = expressions.slice(at, at += lines + others + 1).map((place) => written[place]);
      this.post(parts(this.terms, some.at(-1), some.slice(0, lines), some.slice(lines, -1)));
      this.roots.push(some.at(-1).term);
    }
    this.sections = sections;
    this.uses = Array(this.roots.length).fill(0);
    for (const section of sections) for (const number of section) if (number >= 0) this.uses[number] += 1;
    this.ofShape = grouped(this.terms.shapes);
    this.ofLabel = grouped(this.terms.labels);
  }

  post(found) {
    const number = this.roots.length;
    for (const [term, extent] of found) {
      (this.postings[term] ??= []).push(4 * number + extent);
      this.extents[term] = Math.max(this.extents[term] ?? 0, extent);
    }
  }

  // The expressions that match, each with its score and its tier.
  search(pattern) {
    const found = new Map(), { sizes } = this.terms;
    for (const { term, tier, kept, brevity } of this.matches(pattern)) {
      for (const posting of this.postings[term] ?? []) {
        const number = posting >> 2, reached = (posting & 3) >= STATEMENT ? tier : tier - 3, known = found.get(number);
        if (reached < known?.tier) continue;
        const cover = Math.min(1, sizes[term] / sizes[this.roots[number]]);
        const frequency = tier === INSTANCE ? Math.min(1, Math.log2(1 + this.uses[number]) / 12) : 0;
        const score = reached + LEAST * (0.1 * cover + 0.56 * kept + 0.04 * brevity + 0.05 * frequency);
        if (!known) found.set(number, { score, tier: reached });
        else if (score > known.score) Object.assign(known, { score, tier: reached });
      }
    }
    return found;
  }

  *matches(pattern) {
    const every = this.candidates(pattern), same = this.candidates(pattern, every)[pattern.root], { labels, sizes } = this.terms, unification = new Unification(pattern, this.terms);
    // terms with the same letters, then whole formulas and statements, then small terms
    const rank = (term) => ((same.has(term) ? 0 : 4) + WHOLE - (this.extents[term] ?? 0)) * 2 ** 20 + Math.min(sizes[term], 2 ** 20 - 1);
    const ranks = Float64Array.from(every[pattern.root], (term) => rank(term) * 2 ** 24 + term).sort();
    const counts = pattern.occurrences(pattern.root), size = pattern.sizes[pattern.root];
    const total = (places) => places.reduce((sum, place) => sum + counts.get(pattern.labels[place]), 0);
    let most = MOST_STEPS;
    for (const ranked of ranks) {
      if (most <= 0) return;
      const term = ranked % 2 ** 24, { isFound, steps } = unification.run(term, Math.min(most, STEPS_OF_ONE));
      most -= steps;
      if (!isFound) continue;
      const { letters, values } = unification, renamed = [...letters.keys()].filter((ours) => labels[letters.get(ours)] !== pattern.labels[ours]);
      const kept = 1 - total(renamed) / Math.max(1, size - total([...values.keys()]));
      yield { term, tier: values.size ? INSTANCE : renamed.length ? RENAMED : EQUAL, kept, brevity: Math.min(1, size / sizes[term]) };
    }
  }

  // For each term of a pattern, the terms that may match it, null for all; of some others, those with the same letters.
  candidates(pattern, others = null) {
    const found = [];
    for (let term = 0; term <= pattern.root; term++) found.push(this.matching(pattern, term, found, others?.[term]));
    return found;
  }

  matching(pattern, term, found, others) {
    const label = pattern.labels[term], args = pattern.args[term], { terms } = this;
    if (isWildcard(label)) return null;
    if (!pattern.isOpen[term]) {
      if (!others) return new Set(this.ofShape.get(pattern.shapes[term]));
      return new Set(pattern.keys[term] < 0 ? [] : [pattern.keys[term]]);
    }
    const takesMore = ASSOCIATIVE.has(label) && args.some((arg) => isWildcard(pattern.labels[arg])), unordered = label.startsWith("U!");
    const places = args.flatMap((arg, place) => (found[arg] ? [[found[arg], place]] : []));
    const mayMatch = (theirs) => {
      if (takesMore ? theirs.length < args.length : theirs.length !== args.length) return false;
      return places.every(([some, place]) => (unordered ? theirs.some((each) => some.has(each)) : some.has(theirs[place])));
    };
    const made = new Set();
    for (const each of others ?? this.ofLabel.get(label) ?? []) if (mayMatch(terms.args[each])) made.add(each);
    return made;
  }
}

function grouped(values) {
  const found = new Map();
  for (const [place, value] of values.entries()) {
    const group = found.get(value);
    if (group) group.push(place);
    else found.set(value, [place]);
  }
  return found;
}

// ---- the sub-expressions of a formula, each with the greatest extent that it has

function parts(terms, root, lines, others) {
  const found = new Map(), stack = [root, ...lines, ...others], seen = new Set();
  const add = (term, extent) => found.set(term, Math.max(found.get(term) ?? 0, extent));
  const stated = statements(terms, [root, ...lines].map(({ term }) => term));
  while (stack.length) {
    const { label, args, term } = stack.pop(), operands = args.map((arg) => arg.term);
    if (seen.has(term)) continue;
    seen.add(term);
    add(term, INSIDE);
    stack.push(...args);
    if (args.length < 3) continue;
    if (ASSOCIATIVE.has(label)) for (const [first, last] of runs(args.length)) add(terms.add(label, operands.slice(first, last)), INSIDE);
    if (!TRANSITIVE.has(label)) continue;
    const pairs = pairsOf(operands).map((pair) => terms.add(label, pair));
    for (const pair of pairs) add(pair, INSIDE);
    if (stated.includes(term)) stated.push(...pairs);
  }
  for (const term of stated) if (RELATIONS.has(terms.labels[term])) for (const side of terms.args[term]) add(side, SIDE);
  for (const term of stated) add(term, STATEMENT);
  return found.set(root.term, WHOLE);
}

function statements(terms, stack) {
  const found = [];
  while (stack.length) {
    const term = stack.pop(), label = terms.labels[term];
    found.push(term);
    if (label === LINES || label === CHAIN) stack.push(...terms.args[term]);
    else if (label === "O!cases") stack.push(...terms.args[term].filter((each) => RELATIONS.has(terms.labels[each])));
  }
  return found;
}

function* runs(count) {
  const longest = count <= MOST_RUN ? count - 1 : SHORT_RUN;
  for (let length = 2; length <= longest; length++) for (let first = 0; first <= count - length; first++) yield [first, first + length];
}

function pairsOf(args) {
  const pairs = [];
  for (let second = 1; second < args.length; second++) {
    const firsts = args.length <= MOST_RUN ? Array(second).keys() : new Set([0, second - 1]);
    for (const first of firsts) pairs.push([args[first], args[second]]);
  }
  return pairs;
}

// ---- unification: depth-first search over a linked list of goals, with a stack of choices

class Unification {
  constructor(pattern, terms) {
    Object.assign(this, { pattern, terms, letters: new Map(), taken: new Map(), values: new Map(), trail: [] });
  }

  // Match the pattern to a term; the letters and values are found in `letters` and `values`.
  run(term, most) {
    let goal = { left: [this.pattern.root], right: [term], operator: "", rest: null, places: [] }, steps = 0;
    const choices = [];
    this.undo(0);
    while (goal) {
      choices.push([goal.operator ? this.ways(goal) : this.compared(goal), this.trail.length]);
      goal = undefined;
      while (goal === undefined && choices.length) {
        steps += 1;
        if (steps > most) return { isFound: false, steps };
        const [ways, length] = choices.at(-1);
        this.undo(length);
        const next = ways.next();
        if (next.done) choices.pop();
        else goal = next.value;
      }
    }
    return { isFound: goal === null, steps };
  }

  *compared({ left: [ours], right: [theirs], rest }) {
    const { pattern, terms } = this, label = pattern.labels[ours];
    if (isWildcard(label)) {
      if (this.bound(this.values, ours, this.value(theirs))) yield rest;
      return;
    }
    if (isLetter(label)) {
      if (isLetter(terms.labels[theirs]) && this.bound(this.letters, ours, theirs) && this.bound(this.taken, theirs, ours)) yield rest;
      return;
    }
    if ((!pattern.isOpen[ours] && terms.shapes[theirs] !== pattern.shapes[ours]) || terms.labels[theirs] !== label) return;
    const left = pattern.args[ours], right = terms.args[theirs];
    if (label.startsWith("U!") && left.length) {
      const more = ASSOCIATIVE.has(label) && left.length < right.length && left.some((one) => isWildcard(pattern.labels[one]));
      if (left.length === right.length || more) {
        const places = [...left.keys()].sort((a, b) => this.rank(left[a]) - this.rank(left[b]) || a - b);
        yield { left: places.map((place) => left[place]), right, operator: label, rest, places };
      }
    } else if (left.length === right.length) {
      for (let place = left.length - 1; place >= 0; place--) rest = { left: [left[place]], right: [right[place]], operator: "", rest, places: [] };
      yield rest;
    }
  }

  // First operands without wildcards, the largest first, and last plain wildcards.
  rank(ours) {
    const { labels, isOpen, sizes } = this.pattern;
    return isWildcard(labels[ours]) ? 1e12 : (isOpen[ours] ? 1e9 : 0) - sizes[ours];
  }

  *ways({ left, right, operator, rest, places }) {
    const { labels } = this.pattern;
    if (!isWildcard(labels[left[0]])) {
      for (const place of this.tried(left[0], right, places[0])) {
        yield { left: [left[0]], right: [right[place]], operator: "", rest: after(left.slice(1), without(right, place), operator, rest, places.slice(1)), places: [] };
      }
      return;
    }
    const place = Math.max(0, left.findIndex((each) => this.values.has(each))), ours = left[place], others = without(left, place);
    places = without(places, place);
    if (this.values.has(ours)) {
      const over = this.remaining(right, this.values.get(ours), operator);
      if (over && over.length >= others.length && Boolean(over.length) === Boolean(others.length)) yield after(others, over, operator, rest, places);
      return;
    }
    const most = ASSOCIATIVE.has(operator) ? right.length - others.length : 1;
    for (let length = others.length ? 1 : right.length; length <= most; length++) {
      for (let first = 0; first <= right.length - length; first++) {
        const run = right.slice(first, first + length);
        if (this.bound(this.values, ours, length === 1 ? this.value(run[0]) : valueOf(operator, run))) {
          yield after(others, [...right.slice(0, first), ...right.slice(first + length)], operator, rest, places);
        }
      }
    }
  }

  // The places of operands that may match, each operand once: the equal one, then those near a place.
  tried(ours, right, first) {
    const { pattern, terms } = this, same = [], others = [], seen = new Set();
    for (const [place, theirs] of right.entries()) {
      if (seen.has(theirs)) continue;
      seen.add(theirs);
      if (theirs === pattern.keys[ours]) same.push(place);
      else if (pattern.isOpen[ours] ? terms.labels[theirs] === pattern.labels[ours] : terms.shapes[theirs] === pattern.shapes[ours]) others.push(place);
    }
    return [...same, ...others.sort((a, b) => Math.abs(a - first) - Math.abs(b - first) || a - b)];
  }

  // The other operands, or null if one of the value is missing.
  remaining(right, value, operator) {
    if (value.label !== operator) {
      const place = right.findIndex((term) => equalValues(this.value(term), value));
      return place < 0 ? null : without(right, place);
    }
    const over = [...right];
    for (const term of value.terms) {
      const place = over.indexOf(term);
      if (place < 0) return null;
      over.splice(place, 1);
    }
    return over;
  }

  value(term) {
    const label = this.terms.labels[term], args = this.terms.args[term];
    return ASSOCIATIVE.has(label) && args.length ? valueOf(label, args) : valueOf("", [term]);
  }

  bound(table, name, value) {
    if (table.has(name)) return typeof value === "number" ? table.get(name) === value : equalValues(table.get(name), value);
    table.set(name, value);
    this.trail.push([table, name]);
    return true;
  }

  undo(length) {
    while (this.trail.length > length) {
      const [table, name] = this.trail.pop();
      table.delete(name);
    }
  }
}

const without = (list, place) => [...list.slice(0, place), ...list.slice(place + 1)];
const after = (left, right, operator, rest, places) => (left.length ? { left, right, operator, rest, places } : rest);
const valueOf = (label, terms) => ({ label, terms: [...terms].sort((a, b) => a - b) });
const equalValues = (one, other) => one.label === other.label && String(one.terms) === String(other.terms);
