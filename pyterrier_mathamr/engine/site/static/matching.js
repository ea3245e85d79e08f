// The formulas of a site, and how a pattern matches them. It follows sparse/patterns.py and formula/matching.py: tiers
// and scores are those of Python's PatternIndex.

import { ASSOCIATIVE, CHAIN, LINES, RELATIONS, TRANSITIVE, Terms, addTree, isLetter, isWildcard } from "./terms.js";
import { Unread } from "./grammar.js";
import { readLatex } from "./latex.js";

const INSIDE = 0, SIDE = 1, STATEMENT = 2, WHOLE = 3;
export const TIERS = ["similar", "contains, instance", "contains, renamed", "contains", "instance", "renamed", "equal"];
const INSTANCE = 4, RENAMED = 5, EQUAL = 6;
const MOST_STEPS = 10_000, STEPS_OF_ONE = 2_000, MOST_RUN = 8, SHORT_RUN = 4;
const BELOW_ONE = 0.999;

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
    const uses = new Float64Array(this.roots.length);
    for (const section of sections) for (const number of section) if (number >= 0) uses[number] += 1;
    this.frequencies = uses.map((count) => Math.min(1, Math.log2(1 + count) / 12));
    this.symbols = Float64Array.from(this.roots, (root) => this.terms.sizes[root]);
    // the terms of each label and shape, and above each operand and shape, as they are tried: whole formulas first, then small terms
    Object.assign(this, { ofLabel: Object.create(null), ofShape: [], above: [], aboveShape: [] });
    const { args, labels: names, sizes, shapes } = this.terms, ranks = sizes.map((size, term) => (WHOLE - (this.extents[term] ?? 0)) * 2 ** 40 + size);
    for (const term of [...sizes.keys()].sort((one, other) => ranks[one] - ranks[other])) {
      append(this.ofLabel, names[term], term);
      append(this.ofShape, shapes[term], term);
      for (const arg of args[term]) {
        append(this.above, arg, term);
        append(this.aboveShape, shapes[arg], term);
      }
    }
  }

  post(found) {
    const number = this.roots.length;
    for (const [term, extent] of found) {
      (this.postings[term] ??= []).push(4 * number + extent);
      this.extents[term] = Math.max(this.extents[term] ?? 0, extent);
    }
  }

  // The score of each expression, 0 for one that does not match; the integer part is the tier.
  search(pattern) {
    const { symbols, frequencies } = this, scores = new Float64Array(symbols.length), size = pattern.sizes[pattern.root];
    const unification = new Unification(pattern, this.terms), { letters, values } = unification, counts = pattern.occurrences(pattern.root);
    let most = MOST_STEPS;
    for (const term of this.candidates(pattern)) {
      if (most <= 0) break;
      const { isFound, steps } = unification.run(term, Math.min(most, STEPS_OF_ONE));
      most -= steps;
      if (!isFound) continue;
      let named = size, renamed = 0;
      for (const ours of values.keys()) named -= counts[ours];
      for (const [ours, theirs] of letters) if (theirs !== pattern.keys[ours]) renamed += counts[ours];
      const tier = values.size ? INSTANCE : renamed ? RENAMED : EQUAL, theirSize = this.terms.sizes[term];
      const own = 0.56 * (1 - renamed / Math.max(1, named)) + 0.04 * Math.min(1, size / theirSize);
      for (const posting of this.postings[term] ?? []) {
        const number = posting >> 2, reached = (posting & 3) >= STATEMENT ? tier : tier - 3;
        const cover = Math.min(1, theirSize / symbols[number]), frequency = values.size ? frequencies[number] : 0;
        const score = reached + BELOW_ONE * (own + (0.1 * cover + 0.05 * frequency));
        if (score > scores[number]) scores[number] = score;
      }
    }
    return scores;
  }

  // The terms that may match, those with the same letters first; where many match, the last are never tested.
  *candidates(pattern) {
    const isSame = this.tester(pattern, pattern.root, true), mayMatch = this.tester(pattern, pattern.root, false);
    yield* this.fewest(pattern, true).filter(isSame);
    for (const term of this.fewest(pattern, false)) if (mayMatch(term) && !isSame(term)) yield term;
  }

  // The shortest list that has all terms that may match: by the whole pattern, or by one operand.
  fewest({ root, labels, args, keys, shapes, isOpen }, isSame) {
    const whole = isOpen[root] ? this.ofLabel[labels[root]] : this.ofShape[shapes[root]], closed = args[root].filter((arg) => !isOpen[arg]);
    const lists = [whole, ...closed.map((arg) => (isSame ? this.above[keys[arg]] : this.aboveShape[shapes[arg]]))];
    return lists.reduce((best, some = []) => (best.length <= some.length ? best : some), whole ?? []);
  }

  // A test for the terms that may match one of a pattern, with the same letters or any.
  tester(pattern, ours, isSame) {
    const { labels, args, shapes } = this.terms, label = pattern.labels[ours], key = pattern.keys[ours], shape = pattern.shapes[ours];
    if (!pattern.isOpen[ours]) return isSame ? (theirs) => theirs === key : (theirs) => shapes[theirs] === shape;
    const left = pattern.args[ours], unordered = label.startsWith("U!"), isPlain = left.map((each) => isWildcard(pattern.labels[each]));
    const takesMore = ASSOCIATIVE.has(label) && isPlain.includes(true);
    const tests = left.flatMap((each, place) => {
      const test = this.tester(pattern, each, isSame);
      return isPlain[place] ? [] : unordered ? (right) => right.some(test) : (right) => test(right[place]);
    });
    return (theirs) => {
      const right = args[theirs];
      if (labels[theirs] !== label || right.length < left.length || (right.length > left.length && !takesMore)) return false;
      return tests.every((test) => test(right));
    };
  }
}

function append(lists, name, term) {
  const list = (lists[name] ??= []);
  if (list.at(-1) !== term) list.push(term);
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
    const byRank = (left) => [...left.keys()].sort((a, b) => this.rank(left[a]) - this.rank(left[b]) || a - b);
    this.orders = pattern.args.map(byRank); // in which the operands of unordered operators are matched
  }

  // Match the pattern to a term; the letters and values are found in `letters` and `values`.
  run(term, most) {
    let goal = { left: [this.pattern.root], right: [term], operator: "", rest: null, places: [] }, steps = 0;
    const choices = [];
    this.undo(0);
    while (goal) {
      choices.push({ ways: this.ways(goal), length: this.trail.length });
      goal = undefined;
      while (goal === undefined && choices.length) {
        steps += 1;
        if (steps > most) return { isFound: false, steps };
        const { ways, length } = choices.at(-1);
        this.undo(length);
        goal = ways();
        if (goal === undefined) choices.pop();
      }
    }
    return { isFound: goal === null, steps };
  }

  // The next goal if two terms can match, null after the last; else undefined.
  compared({ left: [ours], right: [theirs], rest }) {
    const { pattern, terms } = this, label = pattern.labels[ours];
    if (isWildcard(label)) {
      return this.bound(this.values, ours, this.value(theirs)) ? rest : undefined;
    }
    if (!pattern.isOpen[ours] && terms.shapes[theirs] !== pattern.shapes[ours]) return undefined;
    if (isLetter(label)) {
      return this.bound(this.letters, ours, theirs) && this.bound(this.taken, theirs, ours) ? rest : undefined;
    }
    if (terms.labels[theirs] !== label) return undefined;
    const left = pattern.args[ours], right = terms.args[theirs];
    if (label.startsWith("U!") && left.length) {
      const more = ASSOCIATIVE.has(label) && left.length < right.length && left.some((one) => isWildcard(pattern.labels[one]));
      if (left.length !== right.length && !more) return undefined;
      const places = this.orders[ours];
      return { left: places.map((place) => left[place]), right, operator: label, rest, places };
    }
    if (left.length !== right.length) return undefined;
    for (let place = left.length - 1; place >= 0; place--) rest = { left: [left[place]], right: [right[place]], operator: "", rest, places: [] };
    return rest;
  }

  // First operands without wildcards, the largest first, and last plain wildcards.
  rank(ours) {
    const { labels, isOpen, sizes } = this.pattern;
    return isWildcard(labels[ours]) ? 1e12 : (isOpen[ours] ? 1e9 : 0) - sizes[ours];
  }

  // A function that returns the next goal of each way to reach one, then undefined.
  ways(goal) {
    const { left, right, operator, rest, places } = goal, { labels } = this.pattern;
    if (!operator) return once(() => this.compared(goal));
    if (!isWildcard(labels[left[0]])) {
      const others = left.slice(1), tried = this.tried(left[0], right, places[0]), later = places.slice(1);
      let next = 0;
      return () => {
        if (next === tried.length) return undefined;
        const place = tried[next++];
        return { left: [left[0]], right: [right[place]], operator: "", rest: after(others, without(right, place), operator, rest, later), places: [] };
      };
    }
    const place = Math.max(0, left.findIndex((each) => this.values.has(each))), ours = left[place], others = without(left, place), later = without(places, place);
    if (this.values.has(ours)) {
      const over = this.remaining(right, this.values.get(ours), operator), fits = over && over.length >= others.length && Boolean(over.length) === Boolean(others.length);
      return once(() => (fits ? after(others, over, operator, rest, later) : undefined));
    }
    const most = ASSOCIATIVE.has(operator) ? right.length - others.length : 1;
    let first = 0, length = others.length ? 1 : right.length;
    return () => {
      if (first + length > right.length) [first, length] = [0, length + 1];
      if (length > most) return undefined;
      const run = right.slice(first, first + length);
      this.bound(this.values, ours, length === 1 ? this.value(run[0]) : valueOf(operator, run));
      return after(others, right.toSpliced(first++, length), operator, rest, later);
    };
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

const once = (make) => () => {
  const made = make?.();
  make = null;
  return made;
};
const without = (list, place) => list.toSpliced(place, 1);
const after = (left, right, operator, rest, places) => (left.length ? { left, right, operator, rest, places } : rest);
const valueOf = (label, terms) => ({ label, terms: [...terms].sort((a, b) => a - b) });
const equalValues = (one, other) => one.label === other.label && String(one.terms) === String(other.terms);
