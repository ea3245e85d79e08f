// LaTeX as people type it to an operator tree. It follows formula/tex; what it does not know is an error that names it,
// never another formula. Symbols, accents and fonts come from symbols.js.

import { ACCENTS, FONTS, LETTERS, ROLE, SYMBOLS } from "./symbols.js";
import { Unread, WIDE, applied, atom, matched, node, scripted, statement, symbol } from "./grammar.js";

const { ATOM, FUNCTION, TEXT, OPEN, CLOSE, BAR, ROW, BLANK, PUNCTUATION, MOD } = ROLE;
const NOTHING = atom(BLANK, node("W!"));
const wide = () => atom(PUNCTUATION, node(""), WIDE);
const words = (text) => new Set(text.split(/\s+/));
const IDLE = words(String.raw`\displaystyle \textstyle \scriptstyle \scriptscriptstyle \big \Big \bigg \Bigg \bigl \Bigl \biggl \Biggl \bigr \Bigr
  \biggr \Biggr \bigm \Bigm \middle \limits \nolimits \nonumber \notag
  \tiny \small \normalsize \large \Large \LARGE \huge \Huge`);
const SPACES = words(String.raw`\, \; \: \! \> \/ \thinspace \medspace \thickspace ~`).add("\\ ");
const FRACTIONS = { "\\frac": "", "\\dfrac": "", "\\tfrac": "", "\\cfrac": "", "\\binom": "()", "\\dbinom": "()", "\\tbinom": "()" };
const INFIX = { "\\over": "", "\\choose": "()" };
const SWITCHES = { "\\rm": "\\mathrm", "\\bf": "\\mathbf", "\\cal": "\\mathcal", "\\sf": "\\mathsf", "\\it": "\\mathit", "\\tt": "\\mathtt" };
const MATRICES = { matrix: "", smallmatrix: "", array: "", pmatrix: "()", bmatrix: "[]", Bmatrix: "{}", vmatrix: "||", Vmatrix: "‖‖", cases: "{" };
const MERGED = { ":=": ":=", "!!": "!!", "||": "||", "′′": "′′", "′′′": "′′′", ">=": "≥", "<=": "≤", ">>": "≫", "<<": "≪" };
const AROUND_DOTS = [ROLE.ADD, ROLE.MUL, ROLE.RELATION, ROLE.COLON];
const DOTS = { ".": "…", "·": "⋯", "⋅": "⋯" };
const TOKEN = /\\[a-zA-Z]+|\\[^]|\?[a-zA-Z]|[^]/uy;
const NUMBER = /\d(?:\d|\.(?=\s*\d)|\s+(?=\.?\s*\d))*/y;
const SIZED_GROUP = /\\[bB]igg?[lrm]?\s*\{/;
const plain = (text) => text.normalize("NFKC");
// What is typed in several ways, to one of them.
const REWRITES = [
  [/[⁰¹²³⁴-⁹⁺⁻⁼⁽⁾ⁿⁱ]+/gu, (some) => `^{${plain(some)}}`],
  [/[₀-₎]+/gu, (some) => `_{${plain(some)}}`],
  [/(?<!\\)\\\s*$/, ""],
  [/−/g, "-"],
  [/°/g, "^{\\circ}"],
  [/(\\[bB]igg?[lrm]?)\s*\{\s*(\\[a-zA-Z]+|\\?[^\sa-zA-Z{}])\s*\}/g, "$1$2 "],
  [/\\(?:begin|end)\{equation\*?\}/g, " "],
  [/\\(left|right|[bB]igg?[lr])\s*([<>])/g, (_, size, sign) => `\\${size}\\${sign === "<" ? "l" : "r"}angle `],
];

export function readLatex(latex) {
  const text = REWRITES.reduce((typed, [pattern, written]) => typed.replace(pattern, written), latex);
  if (SIZED_GROUP.test(text)) throw new Unread("A size before { is not known here");
  return readRow(new Reader(text).row([""])).node;
}

// ---- rows

function readRow(atoms) {
  const row = flat(atoms);
  while (row.length > 1 && row.at(-1).role === PUNCTUATION) row.pop();
  if (!row.length) return atom(ATOM, node("W!"));
  if (row.length === 1 && row[0].role === ATOM) return row[0];
  const parts = matched(row);
  const marks = parts.length > 1 && parts[0].text.startsWith("′");
  return atom(ATOM, marks ? node("M!L-2", [parts[0].node, statement(parts.slice(1))]) : statement(parts), "", { raw: row, scripted: row.length > 1 });
}

const unit = (part) => (part.role === ATOM ? part : readRow(part.role === ROW || part.role === BLANK ? part.raw : [part]));

function flat(atoms, row = []) {
  for (const each of atoms) {
    if (each.role === ROW) flat(each.raw, row);
    else if (each !== NOTHING && !joined(row, each)) row.push(each);
  }
  if (!row.some((each) => each.text === WIDE)) return row;
  const idle = (role) => [PUNCTUATION, TEXT, MOD].includes(role);
  return row.reduce((kept, each, place) => {
    const after = row[place + 1], drop = each.text === WIDE && (!kept.length || !after || row[place + 2]?.role === MOD || idle(kept.at(-1).role) || idle(after.role));
    return drop ? kept : [...kept, each];
  }, []);
}

function joined(row, each) {
  const before = row.at(-1);
  if (!before || before.scripted) return false;
  if (before.text === "." && each.number) {
    row[row.length - 1] = withPoint(each);
    return true;
  }
  if (before.text === "|" && each.text === "|" && each.scripted) {
    row[row.length - 1] = { ...each, text: "||" };
    return true;
  }
  if (each.scripted) return false;
  if (MERGED[before.text + each.text]) {
    row[row.length - 1] = merged(MERGED[before.text + each.text]);
    return true;
  }
  if (DOTS[each.text] && row.length > 1 && row.at(-2).text === each.text && before.text === each.text) {
    row.splice(-2, 2, atom(ATOM, node(`V!${DOTS[each.text]}`), DOTS[each.text]));
    return true;
  }
  return false;
}

const merged = (text) => (SYMBOLS[text] ? symbol(SYMBOLS[text]) : atom(ATOM, node(`V!${text}`), text));

function withPoint(number) {
  const pointed = (tree) => (tree.kids.length ? node(tree.label, [pointed(tree.kids[0]), ...tree.kids.slice(1)]) : node(`N!.${tree.label.slice(2)}`));
  return { ...number, node: pointed(number.node) };
}

function group(atoms) {
  const parts = atoms.filter((each) => each !== NOTHING);
  if (parts.length === 1) return parts[0];
  if (parts.length === 2 && parts[0].text === "{" && parts[1].text === "table") return cases(parts[1]);
  return parts.length ? atom(ROW, node(""), "", { raw: parts }) : NOTHING;
}

function cases({ node: tree }) {
  const rows = tree.label === "O!matrix" ? tree.kids[0] : tree;
  return atom(ATOM, node("O!cases", rows.kids.flatMap(({ kids }) => [...kids, ...Array(Math.max(0, 2 - kids.length)).fill(node("W!"))])), "", { scripted: true });
}

function withScripts(base, below, above, superFirst) {
  const low = below && unit(below), high = above && unit(above);
  if (base.role === CLOSE || base.role === BAR) {
    const made = scripted(base, low, high, superFirst);
    return { ...made, role: base.role, scripts: { below: low, above: high, superFirst } };
  }
  if (base === NOTHING) throw new Unread("A script has nothing before it");
  const made = scripted(base.role === ROW ? readRow(base.raw) : base, low, high, superFirst);
  return { ...made, number: base.number, named: base.named };
}

// ---- LaTeX

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.font = "";
  }

  peek() {
    for (;;) {
      TOKEN.lastIndex = this.at;
      const token = TOKEN.exec(this.text)?.[0] ?? "";
      if (!/^\s$/u.test(token) && !IDLE.has(token)) return token;
      this.at += token.length;
    }
  }

  take(expected) {
    const token = this.peek();
    if (expected && token !== expected) throw new Unread(token ? `${expected} is missing before ${token}` : `${expected} is missing`);
    this.at += token.length;
    return token;
  }

  // The symbols up to one of some tokens, which stays.
  row(ends) {
    let row = [];
    for (;;) {
      const token = this.peek();
      if (ends.includes(token)) return functions(row);
      if (token === "" || token === "}" || token === "&" || token === "\\\\" || token === "\\right" || token === "\\end") {
        throw new Unread(token === "" ? `${ends[0]} is missing` : `${token} closes or separates nothing`);
      }
      if (token in INFIX) {
        this.take();
        return [this.fraction(group(functions(row)), group(this.row(ends)), INFIX[token])];
      }
      if (token in SWITCHES) {
        this.take();
        const rest = this.inFont(SWITCHES[token], true, () => this.row(ends));
        return functions([...row, ...rest]);
      }
      row.push(this.scripts(this.atom()));
    }
  }

  scripts(base) {
    let below = null, above = null, superFirst = false;
    for (;;) {
      const token = this.peek();
      if (token === "_" && !below) {
        this.take();
        below = this.argument();
        superFirst = above !== null;
      } else if (token === "'" && !above) {
        let marks = 0;
        for (; this.peek() === "'"; marks++) this.take();
        above = atom(ATOM, node(`V!${"′".repeat(marks)}`), "′".repeat(marks));
        if (this.peek() === "^") {
          this.take();
          above = atom(ROW, node(""), "", { raw: [above, this.argument()] });
        }
      } else if (token === "^" && !above) {
        this.take();
        above = this.argument();
      } else if ("_^'".includes(token) && token) throw new Unread(`Two scripts in one place: ${token}`);
      else return below || above ? withScripts(base, below, above, superFirst) : base;
    }
  }

  // One token, or what is in braces.
  argument() {
    const token = this.peek();
    if (!token || token === "}" || token === "&" || "^_".includes(token)) throw new Unread("A command or script has nothing after it");
    if (/\d/.test(token)) return this.number(this.take());
    return this.atom();
  }

  braced() {
    this.take("{");
    const row = this.row(["}"]);
    this.take("}");
    return group(row);
  }

  // The text in braces, as it is.
  source() {
    this.take("{");
    const end = this.text.indexOf("}", this.at), text = this.text.slice(this.at, end);
    if (end < 0) throw new Unread("} is missing");
    this.at = end + 1;
    return text;
  }

  number(digits) {
    if (digits.length > 1 && this.font && this.font !== "\\mathrm") throw new Unread(`Digits in ${this.font}`);
    return atom(ATOM, node(`N!${digits.replace(/\s/g, "")}`), digits, { number: true });
  }

  atom() {
    const token = this.peek();
    NUMBER.lastIndex = this.at;
    if (/^\d/.test(token)) {
      const [digits] = NUMBER.exec(this.text);
      this.at += digits.length;
      return this.number(digits);
    }
    if (token === "{") return this.braced();
    this.take();
    if (this.font && LETTERS.includes(token)) return this.styled(token);
    if (SPACES.has(token)) return NOTHING;
    if (token === "\\quad" || token === "\\qquad") return wide();
    if (token[0] === "?" && token.length > 1) return atom(ATOM, node(token), token);
    if (token in FRACTIONS) return this.fraction(this.argument(), this.argument(), FRACTIONS[token]);
    if (token in ACCENTS) {
      const base = unit(this.argument());
      return atom(ATOM, node(`F!${ACCENTS[token]}`, [base.node]), "", { scripted: true, number: base.number });
    }
    if (token in FONTS) return this.inFont(token, this.peek() === "{", () => this.argument());
    if (OTHERS[token]) return OTHERS[token](this);
    const known = SYMBOLS[token];
    if (!known || (this.font && (token === "." || (known[1].startsWith("V!") && /\p{L}/u.test(known[2]))))) {
      throw new Unread(`${this.font && known ? `${token} in ${this.font}` : token} is not known here`);
    }
    return symbol(known);
  }

  fraction(over, under, ends) {
    const made = atom(ATOM, node(ends ? "O!binomial" : "O!divide", [unit(over).node, unit(under).node]), "", { scripted: true });
    return ends ? group([symbol(SYMBOLS[ends[0]]), made, symbol(SYMBOLS[ends[1]])]) : made;
  }

  inFont(font, inWords, read) {
    if (this.font) throw new Unread(`${font} in ${this.font}`);
    Object.assign(this, { font, inWords });
    const made = read();
    this.font = "";
    return made;
  }

  // The letters of a word in a font, of which script and Fraktur are symbols each.
  styled(first) {
    const letters = /(?:\s*[a-zA-Z])*/y, signs = [...FONTS[this.font]];
    letters.lastIndex = this.at;
    const more = this.inWords ? letters.exec(this.text)[0] : "";
    this.at += more.length;
    const word = [...(first + more.replace(/\s/g, ""))].map((letter) => signs[LETTERS.indexOf(letter)]);
    return word.length > 1 && /cal|scr|frak/.test(this.font) ? atom(ROW, node(""), "", { raw: word.map(this.word) }) : this.word(word.join(""));
  }

  // A word, with a meaning of its own or a name, or an upright letter.
  word(text) {
    const known = text.length > 1 && SYMBOLS[text];
    return known ? symbol(known) : atom(ATOM, node(`V!${text}`), text);
  }

  delimiter() {
    const token = this.take();
    if (token === ".") return NOTHING;
    const name = { "<": "\\langle", ">": "\\rangle" }[token] ?? token, known = SYMBOLS[name];
    if (!known || ![OPEN, CLOSE, BAR].includes(known[0])) throw new Unread(`${token} is no delimiter known here`);
    return symbol(known);
  }

  table(name) {
    const rows = [];
    if (name === "array") {
      if (this.peek() === "[") this.at = this.text.indexOf("]", this.at) + 1;
      if (!/^[lcr|\s]*$/.test(this.source())) throw new Unread("These columns of an array are not known here");
    }
    for (let end = "\\\\"; end !== "\\end"; end = this.take()) {
      const cells = [];
      for (let more = "&"; more === "&";) {
        cells.push(readRow(this.row(["&", "\\\\", "\\end"])));
        more = this.peek();
        if (more === "&") this.take();
      }
      rows.push(cells);
      end = this.peek();
      if (end === "\\end") break;
    }
    this.take("\\end");
    if (this.source() !== name) throw new Unread(`\\end{${name}} is missing`);
    while (rows.length > 1 && rows.at(-1).every(({ node: { label, kids } }) => label === "W!" && !kids.length)) rows.pop();
    const tree = node(`M!M-${rows.length}x${Math.max(...rows.map((row) => row.length))}`, rows.map((row) => node("M!R!", row.map((cell) => cell.node))));
    return atom(ATOM, name === "array" ? tree : node("O!matrix", [tree]), "table", { scripted: true });
  }
}

// A name is a function if something follows to which it can be applied.
function functions(row) {
  const visible = row.filter((each) => each !== NOTHING);
  for (const [place, each] of visible.entries()) {
    const after = visible[place + 1]?.role;
    if (each.named && each.role === ATOM && [ATOM, OPEN, ROW, FUNCTION, TEXT, ROLE.BIG].includes(after)) each.role = FUNCTION;
  }
  return row;
}

const over = (reader) => {
  const mark = reader.argument(), base = reader.argument();
  return withScripts(base, null, mark, false);
};

const OTHERS = {
  "\\sqrt"(reader) {
    if (reader.peek() !== "[") return atom(ATOM, applied([node("O!root"), unit(reader.argument()).node]), "", { scripted: true });
    reader.take();
    const degree = unit(group(reader.row(["]"])));
    reader.take("]");
    return atom(ATOM, node("O!root", [unit(reader.argument()).node, degree.node]), "", { scripted: true });
  },
  "\\left"(reader) {
    const open = reader.delimiter(), row = reader.row(["\\right"]);
    reader.take("\\right");
    return group([open, ...row, reader.delimiter()]);
  },
  "\\begin"(reader) {
    const name = reader.source(), ends = MATRICES[name];
    if (ends === undefined) throw new Unread(`\\begin{${name}} is not known here`);
    const table = reader.table(name);
    return ends === "{" ? cases(table) : group([...(ends ? [symbol(SYMBOLS[ends[0]])] : []), table, ...(ends ? [symbol(SYMBOLS[ends[1]])] : [])]);
  },
  "\\dots": (reader) => symbol(SYMBOLS[AROUND_DOTS.includes(SYMBOLS[reader.peek()]?.[0]) ? "⋯" : "…"]),
  "\\text"(reader) {
    const text = reader.source();
    if (/[\\{$]|\?[a-zA-Z]/.test(text)) throw new Unread("Commands in \\text are not known here");
    return text.trim() ? atom(TEXT, node("W!"), text.trim()) : NOTHING;
  },
  "\\operatorname"(reader) {
    if (reader.text[reader.at] === "*") reader.at += 1;
    const name = reader.source().replace(/\s/g, "");
    if (!/^[a-zA-Z]+$/.test(name)) throw new Unread("\\operatorname takes letters here");
    return { ...reader.word(name), named: true };
  },
  "\\color"(reader) {
    if (!/^[a-z]+$/i.test(reader.source())) throw new Unread("\\color takes a name here");
    return NOTHING;
  },
  "\\pmod"(reader) {
    return group([wide(), symbol(SYMBOLS["("]), symbol(SYMBOLS["\\bmod"]), reader.argument(), symbol(SYMBOLS[")"])]);
  },
  "\\not"(reader) {
    const name = `\\not${reader.take()}`;
    if (!SYMBOLS[name]) throw new Unread(`${name} is not known here`);
    return symbol(SYMBOLS[name]);
  },
  "\\qvar"(reader) {
    const name = reader.peek() === "{" ? reader.source() : reader.take();
    return atom(ATOM, node(`?${name.replace(/[^\p{L}\p{N}]/gu, "")}`), "?");
  },
  "\\overset": over,
  "\\stackrel": over,
  "\\underset"(reader) {
    const mark = reader.argument(), base = reader.argument();
    return withScripts(base, mark, null, false);
  },
};
OTHERS["\\boxed"] = OTHERS["\\mathrel"] = OTHERS["\\mathbin"] = OTHERS["\\mathord"] = (reader) => reader.argument();
OTHERS["\\mbox"] = OTHERS["\\textrm"] = OTHERS["\\textit"] = OTHERS["\\textbf"] = OTHERS["\\text"];
OTHERS["\\mod"] = () => group([wide(), symbol(SYMBOLS["\\bmod"])]);
