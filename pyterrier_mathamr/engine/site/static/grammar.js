// The symbols of a row to an operator tree: fences are matched, then operators by their precedence. It follows
// formula/tex/grammar.py; a row that Python keeps as fragments is an error here.

import { ROLE, SYMBOLS } from "./symbols.js";

export class Unread extends Error {}

export const node = (label, kids = []) => ({ label, kids });

// `scripted`: whether scripts, a fraction or the like make it more than one symbol; `raw`: the symbols of a group.
export const atom = (role, tree, text = "", more = {}) => ({ role, node: tree, text, scripted: false, raw: [], items: null, scripts: null, ...more });

export const symbol = ([role, label, text]) => atom(role, node(label), text);

const { ATOM, FUNCTION, BIG, POSTFIX, MUL, ADD, RELATION, COLON, PUNCTUATION, OPEN, CLOSE, BAR, FENCE, MOD, TEXT, BETWEEN } = ROLE;
export const WIDE = "\\quad"; // text of a wide space, which is like a comma
const unreadable = () => new Unread("It cannot be read as a formula");
const has = (atoms, ...roles) => atoms.some((each) => roles.includes(each.role));

export function applied([operator, ...operands]) {
  if (operator.label.startsWith("V!")) operator = node(`F!${operator.label.slice(2)}`, operator.kids);
  if (operator.kids.length) return node("+!", [operator, ...operands]);
  if (operator.label === "O!int") return node("O!int", [operands[0] ?? node("W!"), node("W!"), node("W!")]);
  if (operator.label === "O!root") return node("O!root", [operands[0], node("N!2")]);
  return node(operator.label, operands);
}

export function withScripts(tree, below, above, superFirst) {
  const scripts = [["O!SUB", below], ["O!SUP", above]];
  if (superFirst) scripts.reverse();
  for (const [label, script] of scripts) if (script) tree = node(label, [tree, script.node]);
  return tree;
}

export function scripted(base, below, above, superFirst) {
  const keeps = ![FENCE, TEXT, CLOSE, OPEN, BAR, ROLE.ROW].includes(base.role);
  return atom(keeps ? base.role : ATOM, withScripts(base.node, below, above, superFirst), base.text, { scripted: true });
}

// ---- products

const INTEGRALS = new Set("∫∬∭⨌∮");
const FACTORS = new Set([ATOM, FENCE, TEXT, FUNCTION, POSTFIX]);
const VALUE = "()";

function product(atoms) {
  let rest = []; // to the right of the operator
  for (const each of [...atoms].reverse()) {
    if (each.role === BIG && rest.length) {
      const operands = INTEGRALS.has(each.text) ? differentials(rest) : rest;
      rest = [atom(ATOM, applied([each.node, factors(operands)]), "", { scripted: each.scripted })];
    } else rest.unshift(each.role === BIG ? atom(ATOM, each.node, "", { scripted: each.scripted }) : each);
  }
  return factors(rest);
}

function differentials(atoms) {
  const found = [];
  for (const [place, each] of atoms.entries()) {
    if (each.role === FUNCTION && !atoms[place + 1]?.items) return found.concat(atoms.slice(place));
    const before = found.at(-1);
    if (each.role === ATOM && beginsWithLetter(each.node) && before?.text === "d" && !before.scripted) {
      found[found.length - 1] = atom(ATOM, node("O!differential-d", [each.node]), "", { made: true });
    } else found.push(each);
  }
  return found;
}

function beginsWithLetter(tree) {
  while (tree.label === "O!SUB" || tree.label === "O!SUP") tree = tree.kids[0];
  return tree.label.startsWith("V!");
}

const isNumber = (tree) => tree.label.startsWith("N!");

function factors(atoms) {
  const list = withFunctions(atoms);
  if (list.length === 1) return list[0].node;
  let tree = null, sign = null, last = "";
  for (const each of list) {
    if (each.role === MUL) {
      if (sign) throw unreadable();
      tree ??= node("W!");
      sign = each;
      continue;
    }
    if (!FACTORS.has(each.role)) throw unreadable();
    if (!tree) {
      tree = each.node;
      continue;
    }
    const part = each.node;
    if (!sign && last === "" && each.role === ATOM && part.label === "O!divide" && [tree, ...part.kids].every(isNumber)) {
      tree = node("U!plus", [tree, part]);
      last = "mixed";
      continue;
    }
    const label = sign ? sign.text : "implicit";
    if (label === last) tree.kids.push(part);
    else {
      tree = applied([sign ? sign.node : node("U!times"), tree, part]);
      last = label;
    }
    sign = null;
  }
  if (sign) throw unreadable();
  return tree ?? node("W!");
}

function withFunctions(atoms) {
  const done = [];
  for (const each of atoms) {
    if (each.role === POSTFIX && [ATOM, FENCE].includes(done.at(-1)?.role)) done.push(atom(ATOM, applied([each.node, done.pop().node]), "", { made: true }));
    else done.push(each);
  }
  for (let place = done.length - 1; place >= 0; place--) {
    if (done[place].role !== FUNCTION) continue;
    const end = argumentEnd(done, place), argument = done.slice(place + 1, end);
    if (!argument.length) continue;
    const items = argument.length === 1 && argument[0].role === FENCE && argument[0].items?.length ? argument[0].items : [factors(argument)];
    done.splice(place, end - place, atom(ATOM, applied([done[place].node, ...items]), VALUE, { made: true }));
  }
  return done;
}

function argumentEnd(atoms, place) {
  let end = place + 1;
  if (atoms[end]?.role === FENCE && atoms[end].items?.length) return end + 1;
  while (end < atoms.length) {
    const each = atoms[end], later = end > place + 1;
    if (each.role === MUL && each.text === "/" && later && end + 1 < atoms.length) end += 1;
    else if (!FACTORS.has(each.role) || (later && (each.text === VALUE || stops(atoms, place, end)))) break;
    end += 1;
  }
  return end;
}

function stops(atoms, place, end) {
  if (atoms[place].text === "∇") return true;
  const before = atoms[end - 1];
  return atoms[end].role === FENCE && Boolean(atoms[end].items?.length) && !before.scripted && !before.made;
}

// ---- statements

function pieces(atoms, isEnd = () => true) {
  const parts = [[]];
  for (const each of atoms) {
    if (each.role === PUNCTUATION && isEnd(each)) parts.push([]);
    else parts.at(-1).push(each);
  }
  if (!parts.every((part) => part.length)) throw unreadable();
  return parts;
}

const listed = (nodes) => (nodes.length === 1 ? nodes[0] : node(`M!L-${nodes.length}`, nodes));
const sequence = (nodes) => nodes.reduceRight((rest, each) => node("O!form-seq", [each, rest]));
const endsSentence = (each) => each.role === PUNCTUATION && (each.text === "." || each.text === WIDE);

export function statement(atoms) {
  if (!has(atoms, PUNCTUATION)) return formula(atoms);
  if (atoms.some(endsSentence)) return sequence(pieces(atoms, endsSentence).map(statement));
  const parts = pieces(atoms), related = [...parts.keys()].filter((place) => relates(parts[place]));
  if (!related.length) return node(`M!L-${parts.length}`, parts.map((part) => formula(part)));
  return sequence(related.map((place, i) => {
    const before = parts.slice(i ? place : 0, place), after = parts.slice(place + 1, related[i + 1] ?? parts.length);
    return formula(parts[place], before.map((part) => formula(part)), after.map((part) => formula(part)));
  }));
}

function relates(part) {
  if (part.length === 1 && part[0].role === FENCE && part[0].text === "(") part = part[0].raw;
  return has(part, RELATION, COLON);
}

function formula(atoms, before = [], after = []) {
  if (atoms.length === 1) return listed([...before, atoms[0].node, ...after]);
  let tree = null, sign = null, part = [];
  const close = (isLast) => {
    const lead = sign ? [] : before, trail = isLast ? after : [];
    const side = part.length ? relation(part, lead, trail) : listed(lead.length + trail.length ? [...lead, ...trail] : [node("W!")]);
    tree = sign ? applied([sign.node, tree, side]) : side;
  };
  if (!has(atoms, COLON)) return relation(atoms, before, after);
  for (const each of atoms) {
    if (each.role !== COLON) part.push(each);
    else {
      close(false);
      sign = each;
      part = [];
    }
  }
  close(true);
  return tree;
}

const TURNED = { "O!superset-of": "O!subset", "O!superset-of-or-equals": "O!subset" };

function relation(atoms, before, after) {
  const signs = [...atoms.keys()].filter((place) => atoms[place].role === RELATION);
  if (!signs.length) return listed([...before, conditional(atoms), ...after]);
  if (atoms.length === 1 && !before.length && !after.length) return atoms[0].node;
  const sides = [...signs, atoms.length].map((end, i) => {
    const part = atoms.slice(i ? signs[i - 1] + 1 : 0, end);
    if (!part.length && i && end < atoms.length) throw unreadable();
    return part.length ? [conditional(part)] : [];
  });
  sides[0] = [...before, ...sides[0]];
  sides.push([...sides.pop(), ...after]);
  const operands = sides.map((side) => listed(side.length ? side : [node("W!")])), sign = atoms[signs[0]].node;
  const first = TURNED[sign.label] ? node(TURNED[sign.label], [operands[1], operands[0]]) : applied([sign, operands[0], operands[1]]);
  if (signs.length === 1) return first;
  return node("U!and", [first, ...signs.slice(1).map((place, i) => applied([atoms[place].node, operands[i + 2]]))]);
}

function conditional(atoms) {
  if (atoms.length === 1) return atoms[0].node;
  const place = atoms.findIndex((each) => each.role === BETWEEN);
  if (place < 0) return modular(atoms);
  if (atoms[place].text === "|") {
    const start = atoms.slice(0, place).findLastIndex((each) => each.role === ADD) + 1, rest = atoms.slice(place + 1);
    if (has(rest, BETWEEN)) throw unreadable();
    const tree = applied([atoms[place].node, expression(atoms.slice(start, place)), modular(rest)]);
    return expression([...atoms.slice(0, start), atom(ATOM, tree, "", { scripted: atoms[place].scripted })]);
  }
  const places = [...atoms.keys()].filter((at) => atoms[at].role === BETWEEN);
  return places.reduce((tree, at, i) => applied([atoms[at].node, tree, modular(atoms.slice(at + 1, places[i + 1] ?? atoms.length))]), modular(atoms.slice(0, place)));
}

function modular(atoms) {
  const places = [...atoms.keys()].filter((at) => atoms[at].role === MOD);
  if (!places.length) return expression(atoms);
  return places.reduce((tree, at, i) => {
    const sign = atoms[at].node, rest = atoms.slice(at + 1, places[i + 1] ?? atoms.length);
    if (sign.label === "O!rem") return applied([sign, tree, expression(rest)]);
    const annotated = node("O!annotated", [tree, sign]);
    return rest.length ? applied([node("U!times"), annotated, expression(rest)]) : annotated;
  }, expression(atoms.slice(0, places[0])));
}

function expression(atoms) {
  if (!atoms.length) throw unreadable();
  if (atoms.length === 1) return atoms[0].node;
  const terms = [[[], []]];
  for (const each of atoms) {
    const [signs, term] = terms.at(-1);
    if (each.role !== ADD) term.push(each);
    else if (term.length) terms.push([[each], []]);
    else signs.push(each);
  }
  let tree = null, last = "";
  for (const [signs, term] of terms) {
    if (!term.length) {
      if (!tree || signs.length > 1) throw unreadable();
      return node("O!limit-from", [tree, signs[0].node]);
    }
    let side = product(term);
    for (const sign of (tree ? signs.slice(1) : signs).reverse()) side = applied([sign.node, side]);
    if (!tree) tree = side;
    else if (signs[0].node.label === last && !signs[0].node.kids.length) tree.kids.push(side);
    else {
      tree = applied([signs[0].node, tree, side]);
      last = signs[0].node.label;
    }
  }
  return tree;
}

// ---- fences

const PAIRS = { "(": ")]", "[": "])", "{": "}", "⌊": "⌋", "⌈": "⌉", "⟨": "⟩" };
const OPERANDS = [ATOM, FENCE, TEXT, POSTFIX, CLOSE];
const between = (bar) => atom(BETWEEN, node(SYMBOLS[bar.text][1]), bar.text, { scripted: bar.scripted });

export function matched(row) {
  if (!has(row, OPEN, CLOSE, BAR)) return [...row];
  const levels = [[null, []]], paired = pairedBars(row);
  for (const [place, each] of row.entries()) {
    let [opener, level] = levels.at(-1);
    if (each.role === OPEN) levels.push([each, []]);
    else if (each.role === CLOSE) {
      while (opener?.role === BAR) {
        levels.pop();
        levels.at(-1)[1].push(between(opener), ...level);
        [opener, level] = levels.at(-1);
      }
      if (!opener || !PAIRS[opener.text].includes(each.text)) throw unreadable();
      levels.pop();
      levels.at(-1)[1].push(fence(opener, level, each));
    } else if (each.role === BAR) {
      const ended = OPERANDS.includes(level.at(-1)?.role);
      if (opener?.role === BAR && opener.text === each.text && ended) {
        levels.pop();
        levels.at(-1)[1].push(fence(opener, level, each));
      } else if (!ended || paired.has(place)) levels.push([each, []]);
      else level.push(between(each));
    } else level.push(each);
  }
  while (levels.at(-1)[0]?.role === BAR && levels.at(-2)[1].length) {
    const [last, level] = levels.pop();
    levels.at(-1)[1].push(between(last), ...level);
  }
  if (levels.length > 1) throw unreadable();
  return levels[0][1];
}

function pairedBars(row) {
  const paired = new Set();
  let levels = [new Set()];
  for (let place = row.length - 1; place >= 0; place--) {
    const { role, text } = row[place];
    if (role === CLOSE) levels.push(new Set());
    else if (role === OPEN) {
      levels.pop();
      if (!levels.length) levels = [new Set()];
    } else if (role === BAR) {
      if (levels.at(-1).has(text)) paired.add(place);
      levels.at(-1).add(text);
    }
  }
  return paired;
}

function fence(opener, inner, closer) {
  if (!inner.length) throw unreadable();
  const [tree, items] = fenceNode(opener.text, inner, closer.text);
  let made = atom(inner[0].role === MOD && opener.text === "(" ? MOD : FENCE, tree, opener.text, { raw: inner, items, scripted: true });
  if (closer.scripts) {
    const { below, above, superFirst } = closer.scripts;
    made = scripted(made, below, above, superFirst);
  }
  return made;
}

function fenceNode(opening, inner, closing) {
  if (inner[0].role === MOD && inner.length > 1) {
    const tree = node("F!pmod", [statement(inner.slice(1))]);
    return [tree, [tree]];
  }
  const place = inner.findIndex((each) => each.role === BETWEEN || (each.role === COLON && each.text === ":"));
  if (opening === "{" && place > 0) {
    if (place === inner.length - 1) throw unreadable();
    const parts = [statement(inner.slice(0, place)), statement(inner.slice(place + 1))];
    return [node("O!conditional-set", parts), [node("F!:", parts)]];
  }
  if (inner.some((each) => each.text === ";")) {
    const tree = listed(pieces(inner).map((part) => formula(part)));
    return [tree, [tree]];
  }
  if (opening === "{" && has(inner, RELATION, COLON)) {
    const tree = statement(inner);
    return [node("M!S-1", [tree]), [tree]];
  }
  const items = pieces(inner).map((part) => formula(part));
  return [byKind(opening, items, closing), "([{".includes(opening) ? items : []];
}

const ENDS = { "(": "O", "[": "C", ")": "O", "]": "C" };
const NORMS = { "||": "F!abs", "‖‖": "O!norm", "||||": "O!norm", "⌊⌋": "F!floor", "⌈⌉": "F!ceiling" };

function byKind(opening, items, closing) {
  const count = items.length, ends = opening + closing;
  if ("([".includes(opening) && ")]".includes(closing)) {
    if (count === 1 && (ends === "()" || items[0].label === "O!matrix")) return items[0];
    if (count === 2) return node(`O!interval(${ENDS[opening]}-${ENDS[closing]})`, items);
    if (ends === "()") return node(`M!V-${count}`, items);
    if (ends === "[]") return count === 1 ? node("M!D-lsqb;&rsqb;", items) : listed(items);
    throw unreadable();
  }
  if (ends === "{}") return node(`M!S-${count}`, items);
  if (ends === "⟨⟩") return node("M!D-⟩", items);
  if (ends === "||" && items[0].label === "O!matrix") return node("F!det", items);
  if (!NORMS[ends]) throw unreadable();
  return node(NORMS[ends], [listed(items)]);
}
