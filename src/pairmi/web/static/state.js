// What the user has chosen: kept in the address, so that a link is the state; canvases can be undone.

const EXAMPLE = {
  9: "97.2.....2.3.8.69...54...7.7.........3....1....9.75..41.75.8..33.2..1......7.....",
  protein: "EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAYLQMNSLRAEDTAVYYC..............WGQGTLVTVSS",
};
const RACE = ["sequential", "top-k:k=4", "eb", "mi-guided"];
const NUMBERS = ["cell", "pass", "seed", "temperature"];
const FLAGS = ["greedy", "verify"];

export const state = { view: "board", model: "", canvas: "", mi: "head", cell: null, rule: "mi-guided", seed: 0, temperature: 1, greedy: true, verify: false, pass: 0, race: RACE };
const DEFAULTS = { ...state };
const past = [];
const future = [];
let listener = () => {};

export const onChange = (callback) => (listener = callback);
export const canUndo = () => past.length > 0;
export const canRedo = () => future.length > 0;

export function example(model) {
  if (model.side === 9) return EXAMPLE[9];
  const protein = model.length === null && [...EXAMPLE.protein].every((letter) => letter === "." || model.symbols.includes(letter));
  return protein ? EXAMPLE.protein : ".".repeat(model.length ?? 24);
}

export function set(changes, remember = true) {
  const moved = ["canvas", "model"].some((key) => key in changes && changes[key] !== state[key]);
  if (moved && remember && state.canvas) {
    past.push({ canvas: state.canvas, model: state.model });
    future.length = 0;
  }
  if (moved) changes = { pass: 0, ...changes };
  Object.assign(state, changes);
  write();
  listener(changes);
}

function travel(from, to) {
  if (!from.length) return;
  to.push({ canvas: state.canvas, model: state.model });
  set(from.pop(), false);
}
export const undo = () => travel(past, future);
export const redo = () => travel(future, past);

function write() {
  const shown = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    const text = key === "race" ? value.join(" ") : value;
    const usual = key === "race" ? DEFAULTS.race.join(" ") : DEFAULTS[key];
    if (value !== null && text !== usual) shown.set(key, String(text));
  }
  history.replaceState(null, "", `#${shown}`);
}

/** Takes what the address says, as far as it makes sense. */
export function read() {
  for (const [key, text] of new URLSearchParams(location.hash.slice(1))) {
    if (!(key in state)) continue;
    if (NUMBERS.includes(key)) state[key] = Number.isFinite(Number(text)) ? Math.max(0, Number(text)) : DEFAULTS[key];
    else if (FLAGS.includes(key)) state[key] = text === "true";
    else if (key === "race") state.race = text.split(" ").filter(Boolean).slice(0, 4);
    else state[key] = text;
  }
  if (!["board", "sequence", "race"].includes(state.view)) state.view = "board";
}
