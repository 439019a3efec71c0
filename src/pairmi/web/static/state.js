// What the user has chosen: kept in the address, so that a link is the state; canvases can be undone. null = not chosen.

const whole = (most) => (text) => /^\d+$/.test(text) && Number(text) <= most;
const one = (...allowed) => (text) => allowed.includes(text);
const CHECKS = {
  view: one("board", "sequence", "race"), mi: one("head", "probe"), greedy: one("true", "false"), verify: one("true", "false"),
  cell: whole(511), pass: whole(9999), seed: whole(2 ** 31 - 1), temperature: (text) => Number(text) >= 0.01 && Number(text) <= 100,
};
const VALUES = { cell: Number, pass: Number, seed: Number, temperature: Number, greedy: (text) => text === "true", verify: (text) => text === "true", race: (text) => text.split(" ").filter(Boolean).slice(0, 4) };

export const state = { view: "board", model: "", canvas: "", mi: "head", cell: null, rule: null, seed: 0, temperature: 1, greedy: null, verify: false, pass: 0, race: null };
const DEFAULTS = { ...state };
const past = [];
const future = [];
let listener = () => {};

export const onChange = (callback) => (listener = callback);
export const canUndo = () => past.length > 0;
export const canRedo = () => future.length > 0;

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
    if (value !== null && value !== DEFAULTS[key]) shown.set(key, key === "race" ? value.join(" ") : String(value));
  }
  history.replaceState(null, "", `${location.search}#${shown}`);
}

/** Takes what the address says, as far as it makes sense; returns what does not. */
export function read() {
  const wrong = [];
  for (const [key, text] of new URLSearchParams(location.hash.slice(1))) {
    if (!(key in state)) wrong.push(`${key.slice(0, 30)} means nothing here`);
    else if (CHECKS[key] && !CHECKS[key](text)) wrong.push(`${key} cannot be ${text.slice(0, 30) || "empty"}`);
    else state[key] = VALUES[key] ? VALUES[key](text) : text;
  }
  return wrong;
}
