// LaTeX that the box offers: the symbols of the bar, in groups, and the commands that are suggested after a backslash.
// "|" is where the cursor goes.

const pairs = (text) => text.split(" ").map((pair) => [pair[0], `\\${pair.slice(1)}`]);
const letters = (text) => [...text].map((letter) => [{ N: "ℕ", Z: "ℤ", Q: "ℚ", R: "ℝ", C: "ℂ" }[letter], `\\mathbb{${letter}}`]);

export const GROUPS = [
  ["Structure", [["$ $", "$|$"], ["?a", "?a"], ["√", "\\sqrt{|}"], ["a/b", "\\frac{|}{}"], ["xⁿ", "^{|}"], ["xₙ", "_{|}"], ["∑", "\\sum_{|}^{}"], ["∫", "\\int_{|}^{}"],
    ["∏", "\\prod_{|}^{}"], ["lim", "\\lim_{|}"], ["(ⁿₖ)", "\\binom{|}{}"]]],
  ["Relations", pairs("≤le ≥ge ≠ne ≈approx ≡equiv ∼sim ∈in ∉notin ⊂subset ⊆subseteq ∣mid")],
  ["Operators", pairs("±pm ·cdot ×times ∪cup ∩cap ∘circ ∂partial ∇nabla ∞infty")],
  ["Greek", pairs("αalpha βbeta γgamma δdelta εvarepsilon ζzeta θtheta λlambda μmu ξxi πpi ρrho σsigma τtau φvarphi χchi ψpsi ωomega ΓGamma ΔDelta ΣSigma ΦPhi ΩOmega")],
  ["Arrows and logic", pairs("→to ⇒Rightarrow ⇔iff ↦mapsto ∀forall ∃exists ¬neg ∧land ∨lor")],
  ["Sets", [...letters("NZQRC"), ["∅", "\\emptyset"]]],
];

const MORE = [
  ["x̄", "\\overline{|}"], ["x̂", "\\hat{|}"], ["x⃗", "\\vec{|}"], ["x̃", "\\tilde{|}"], ["ẋ", "\\dot{|}"], ["‖x‖", "\\|"], ["⟨", "\\langle"], ["⟩", "\\rangle"],
  ["⌊", "\\lfloor"], ["⌋", "\\rfloor"], ["⌈", "\\lceil"], ["⌉", "\\rceil"], ["( )", "\\left(|\\right)"], ["𝔽", "\\mathbb{|}"], ["ℒ", "\\mathcal{|}"],
  ["𝔤", "\\mathfrak{|}"], ["rm", "\\mathrm{|}"], ["bf", "\\mathbf{|}"], ["text", "\\text{|}"], ["f", "\\operatorname{|}"], ["sin", "\\sin"], ["cos", "\\cos"],
  ["tan", "\\tan"], ["log", "\\log"], ["ln", "\\ln"], ["exp", "\\exp"], ["max", "\\max"], ["min", "\\min"], ["sup", "\\sup"], ["inf", "\\inf"], ["det", "\\det"],
  ["dim", "\\dim"], ["ker", "\\ker"], ["gcd", "\\gcd"], ["arg", "\\arg"], ["mod", "\\pmod{|}"], ["mod", "\\bmod"], ["…", "\\dots"], ["⋯", "\\cdots"], ["ℓ", "\\ell"],
  ["∬", "\\iint"], ["∮", "\\oint"], ["⊕", "\\oplus"], ["⊗", "\\otimes"], ["≅", "\\cong"], ["≃", "\\simeq"], ["∝", "\\propto"], ["≪", "\\ll"], ["≫", "\\gg"],
  ["⊥", "\\perp"], ["∥", "\\parallel"], ["∖", "\\setminus"], ["⋃", "\\bigcup"], ["⋂", "\\bigcap"], ["⊃", "\\supset"], ["⊇", "\\supseteq"], ["←", "\\leftarrow"],
  ["↔", "\\leftrightarrow"], ["⟹", "\\implies"], ["η", "\\eta"], ["κ", "\\kappa"], ["ν", "\\nu"], ["ϵ", "\\epsilon"], ["ϕ", "\\phi"], ["Λ", "\\Lambda"], ["Π", "\\Pi"],
  ["Ψ", "\\Psi"], ["Θ", "\\Theta"], ["ℵ", "\\aleph"], ["†", "\\dagger"], ["∗", "\\ast"], ["⋆", "\\star"], ["△", "\\triangle"], ["∠", "\\angle"], ["°", "^\\circ"],
  ["( )", "\\begin{pmatrix}|\\end{pmatrix}"], ["{", "\\begin{cases}|\\end{cases}"], ["=", "\\begin{align}|\\end{align}"],
];

const KNOWN = [...GROUPS.flatMap(([, symbols]) => symbols), ...MORE].filter(([, latex]) => latex.startsWith("\\"));

// The commands whose names begin with some letters, in the order of the tables, shorter names first among equals.
export function commandsFor(letters, most = 8) {
  return KNOWN.filter(([, latex]) => latex.startsWith(letters, 1)).slice(0, most);
}

export const isCommand = (name) => KNOWN.some(([, latex]) => latex.match(/^\\[a-zA-Z]+/)?.[0] === `\\${name}`);

const OF_SIGN = new Map(KNOWN.filter(([sign, latex]) => [...sign].length === 1 && sign > "\x7f" && !/[{|]/.test(latex.replace(/\\mathbb\{\w\}/, ""))));

export function withCommands(latex) {
  const signs = { "∑": "\\sum", "∫": "\\int", "∏": "\\prod", "−": "-" };
  const known = (sign) => signs[sign] || OF_SIGN.get(sign);
  return latex.replace(/[^\x00-\x7f]/gu, (sign, at) => {
    const written = known(sign);
    return !written ? sign : /[a-zA-Z]$/.test(written) && /[a-zA-Z]/.test(latex[at + sign.length] || "") ? `${written} ` : written;
  });
}
