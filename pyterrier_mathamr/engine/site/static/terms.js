// Operator trees to terms: distinct sub-expressions in normal form, operands before operators. It follows
// formula/matching.py; terms have numbers in place of hashes.

import { RELATIONS as RELATING } from "./symbols.js";

export const SUM = "U!plus", PRODUCT = "U!times", CHAIN = "U!and", LINES = "O!form-seq";
export const ASSOCIATIVE = new Set([SUM, PRODUCT, CHAIN, "U!or", "U!union", "U!intersect"]);
export const TRANSITIVE = new Set(["U!eq", "U!equivalent", "U!iff"]);
export const RELATIONS = new Set(RELATING);
const POWER = "O!SUP", INDEX = "O!SUB", E = "V!𝑒";
const FLIPPED = { "O!gt": "O!lt", "O!geq": "O!leq", "O!implied-by": "O!implies", "O!much-greater-than": "O!much-less-than" };
const SUMS = new Set([SUM, "O!minus"]), PRODUCTS = new Set([PRODUCT, "F!⋅"]);
const DOUBLE_STRUCK = /^[ℂℍℕℙℚℝℤℼ-⅀ⅅ-ⅉ\u{1D538}-\u{1D56B}\u{1D7D8}-\u{1D7E1}]$/u;

const letters = new Map();

export function isLetter(label) {
  if (!letters.has(label)) letters.set(label, isLetterName(label));
  return letters.get(label);
}

function isLetterName(label) {
  if (!label.startsWith("V!")) return false;
  const name = label.slice(2).replace(/^italic-/, "");
  return /^\p{L}$/u.test(name) && /^\p{L}$/u.test(name.normalize("NFKC")) && name.normalize("NFKC") !== "π" && !DOUBLE_STRUCK.test(name);
}

export const isWildcard = (label) => label.length > 1 && label[0] === "?";

// Distinct terms. Of a pattern, `keys` and `shapes` are the numbers that its terms have in another table, -1 for none.
export class Terms {
  constructor(table = null) {
    this.table = table;
    this.labels = [];
    this.args = [];
    this.sizes = [];
    this.keys = [];
    this.shapes = [];
    this.isOpen = [];
    this.numbers = new Map();
    this.shapeNumbers = new Map();
  }

  add(label, args = []) {
    const unordered = label.startsWith("U!"), key = keyOf(label, args, unordered);
    const known = this.numbers.get(key);
    if (known !== undefined) return known;
    const number = this.labels.length, shapes = args.map((arg) => this.shapes[arg]);
    this.numbers.set(key, number);
    this.labels.push(label);
    this.args.push(args);
    this.sizes.push(args.reduce((size, arg) => size + this.sizes[arg], 1));
    const name = isLetter(label) ? "V!" : label;
    if (this.table) {
      const keys = args.map((arg) => this.keys[arg]);
      this.keys.push((keys.includes(-1) ? undefined : this.table.numbers.get(keyOf(label, keys, unordered))) ?? -1);
      this.shapes.push((shapes.includes(-1) ? undefined : this.table.shapeNumbers.get(keyOf(name, shapes, unordered))) ?? -1);
      this.isOpen.push(isWildcard(label) || args.some((arg) => this.isOpen[arg]));
      return number;
    }
    const shape = keyOf(name, shapes, unordered);
    if (!this.shapeNumbers.has(shape)) this.shapeNumbers.set(shape, this.shapeNumbers.size);
    this.shapes.push(this.shapeNumbers.get(shape));
    return number;
  }

  // How often each term occurs in one.
  occurrences(root) {
    const times = Array(root + 1).fill(0);
    times[root] = 1;
    for (let term = root; term >= 0; term--) for (const arg of this.args[term]) times[arg] += times[term];
    return times;
  }
}

function keyOf(label, args, unordered) {
  if (args.length < 2) return args.length ? `${label} ${args[0]}` : label;
  return `${label} ${(unordered ? args.toSorted((a, b) => a - b) : args).join()}`;
}

// ---- normal form

export function addTree(terms, tree) {
  const { label, kids } = tree;
  if (!kids.length) return terms.add(label);
  if (label === CHAIN && isChain(tree)) return chain(terms, kids.map((kid) => [kid.label, kid.kids.map((each) => addTree(terms, each))]));
  if (SUMS.has(label) || PRODUCTS.has(label) || label === LINES || ASSOCIATIVE.has(label)) {
    const args = operands(tree).map(([kid, negated]) => (negated ? terms.add("neg", [addTree(terms, kid)]) : addTree(terms, kid)));
    const name = SUMS.has(label) ? SUM : PRODUCTS.has(label) ? PRODUCT : label;
    return args.length === 1 && ASSOCIATIVE.has(name) ? args[0] : terms.add(name, args);
  }
  const args = kids.map((kid) => addTree(terms, kid));
  if (RELATIONS.has(label)) return relation(terms, label, args);
  if (label === POWER && terms.labels[args[0]] === E) args[0] = terms.add("C!𝑒");
  else if (label === INDEX && terms.labels[args[0]] === POWER) {
    const [base, power] = terms.args[args[0]];
    return terms.add(POWER, [terms.add(INDEX, [base, ...args.slice(1)]), power]);
  }
  return terms.add(label.startsWith("+!") ? "+!" : label, args);
}

const isChain = ({ kids }) => kids.length > 1 && kids.every((kid) => RELATIONS.has(kid.label) && kid.kids.length);

// Whether an operand is merged into its operator.
function isInner({ label, kids }, kid, place) {
  if (SUMS.has(label)) return SUMS.has(kid.label) && !(label === "O!minus" && (place || kids.length === 1));
  if (PRODUCTS.has(label)) return PRODUCTS.has(kid.label);
  return kid.label === label && !(label === CHAIN && isChain(kid));
}

function operands(tree, found = []) {
  for (const [place, kid] of tree.kids.entries()) {
    if (isInner(tree, kid, place)) operands(kid, found);
    else found.push([kid, tree.label === "O!minus" && (place > 0 || tree.kids.length === 1)]);
  }
  return found;
}

const relation = (terms, label, args) => (FLIPPED[label] && args.length === 2 ? terms.add(FLIPPED[label], [args[1], args[0]]) : terms.add(label, args));

function chain(terms, relations) {
  const found = [];
  for (const [label, args] of relations) {
    const last = found.at(-1), sides = last && args.length === 1 ? [last[1].at(-1), ...args] : args;
    if (last && TRANSITIVE.has(label) && last[0] === label && last[1].at(-1) === sides[0]) last[1].push(...sides.slice(1));
    else found.push([label, [...sides]]);
  }
  const made = found.map(([label, sides]) => relation(terms, label, sides));
  return made.length === 1 ? made[0] : terms.add(CHAIN, made);
}
