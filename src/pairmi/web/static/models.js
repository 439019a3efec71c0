// The models that the server offers, and what the page must know of the one in use.

import { state } from "./state.js";

const EXAMPLE = {
  "albert-zh": "现 代 _ _ 的 奠 基 人",
  9: "97.2.....2.3.8.69...54...7.7.........3....1....9.75..41.75.8..33.2..1......7.....",
  protein: "EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAYLQMNSLRAEDTAVYYC..............WGQGTLVTVSS",
};
const GENERATE = "mi-bound:budget=0.1,entropy_weight=0.02,penalty=10";
const COUPLED = "mi-bound:budget=3,draw=coupled,defer=0.006";
const SOLVE = "mi-guided:budget=0.1";
const SEQUENCE = "mi-bound:budget=0.25";
const WITHOUT_MI = "eb:budget=0.1";

export const offered = { models: [], rules: [] };
export const model = () => offered.models.find((one) => one.name === state.model);
export const onBoard = () => state.view === "board" && model().side !== null;
export const names = (i) => (model().side ? `r${Math.floor(i / model().side) + 1}c${(i % model().side) + 1}` : String(i + 1));

export const split = (text, of = model()) => (of.spaced ? text.split(/\s+/).filter(Boolean) : [...text]);
export const join = (cells, of = model()) => cells.join(of.spaced ? " " : "");
export const isOpen = (symbol) => symbol?.length === 1 && model().blanks.includes(symbol);
export const openCount = (text) => split(text).filter(isOpen).length;
export const blank = (length, of = model()) => join(Array(length).fill(of.blanks[0]), of);
export const short = (symbol, letters = 7) => (symbol.length > letters ? `${symbol.slice(0, letters - 1)}…` : symbol);

export function example(of) {
  if (of.side === 9) return EXAMPLE[9];
  if (of.name in EXAMPLE && of.spaced) return EXAMPLE[of.name].replaceAll("_", of.blanks[0]);
  const protein = of.length === null && [...EXAMPLE.protein].every((letter) => letter === "." || of.symbols.includes(letter));
  return protein ? EXAMPLE.protein : blank(of.length ?? (of.spaced ? 12 : 24), of);
}

/** What a person typed or pasted, as a canvas: boards may have spaces, rules and zeros. */
export function typed(text) {
  if (model().spaced) return join(split(text));
  const letters = text.replace(/\s/g, "");
  return model().side ? letters.replace(/[|+-]/g, "").replace(/[0*]/g, ".") : letters;
}

/** Why the model cannot take a canvas, with the positions that are wrong; null if it can. */
export function refusal(text) {
  const { length, symbols, name, blanks } = model();
  const cells = split(text);
  if (!cells.length || (length !== null && cells.length !== length)) return { message: `expected ${length ?? "at least one"} positions, got ${cells.length}`, positions: [] };
  const wrong = symbols.length ? cells.flatMap((symbol, i) => (isOpen(symbol) || symbols.includes(symbol) ? [] : [i])) : [];
  return wrong.length ? { message: `${cells[wrong[0]]} at ${names(wrong[0])} is no symbol of ${name} (${symbols.join("")}; ${blanks[0]} = unknown)`, positions: wrong } : null;
}

/** Fewer givens than any puzzle with one solution has: a board is made, not solved. */
const makes = () => model().side !== null && split(state.canvas).length - openCount(state.canvas) < (model().side === 9 ? 17 : 4);
export const purpose = () => (model().side === null ? "sequences" : makes() ? "making boards" : "solving puzzles");
/** Over a large alphabet the MI of a rule comes from draws too: trying every symbol would take minutes. */
const sequence = () => (model().tried < model().size && !model().head ? `${SEQUENCE},draws=4` : SEQUENCE);
export const recommended = () => (model().side === null ? sequence() : makes() ? GENERATE : SOLVE);

/** What the user chose, or what is best here. */
export const chosen = () => ({
  rule: state.rule ?? recommended(),
  race: state.race ?? ["sequential", "top-k:k=4", WITHOUT_MI, recommended(), ...(makes() && model().defers ? [COUPLED] : [])],
  greedy: state.greedy ?? !makes(),
});

/** Replaces what an address said and the server cannot do; returns what was wrong. */
export function mend() {
  const wrong = [];
  if (state.model && !model()) wrong.push(`model ${short(state.model, 30)} is not loaded here`);
  if (!model()) state.model = offered.models[0].name;
  const against = state.canvas ? refusal(state.canvas) : null;
  if (against && !against.positions.length) wrong.push(`the canvas does not fit ${state.model}: ${against.message}`);
  if (!state.canvas || (against && !against.positions.length)) state.canvas = example(model());
  const known = (spec) => offered.rules.some((rule) => rule.name === spec.split(":")[0]);
  if (state.rule && !known(state.rule)) wrong.push(`there is no rule ${short(state.rule, 30)}`), (state.rule = null);
  if (state.race && !(state.race.length >= 2 && state.race.every(known))) wrong.push("the rules of the race are not all known"), (state.race = null);
  if (state.cell !== null && state.cell >= split(state.canvas).length) wrong.push(`there is no position ${state.cell + 1}`), (state.cell = null);
  return wrong;
}
