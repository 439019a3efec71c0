// Everything tied together: what the user chose, what the server says of it, and what is drawn.

import { createCells } from "./cells.js";
import { drawLegend, isDark, largest, theme } from "./colour.js";
import { $, notify, say } from "./dom.js";
import { save } from "./export.js";
import { listenForHelp, tourOnce } from "./help.js";
import { explain, inspect, source } from "./inspect.js";
import { blank, chosen, example, isOpen, join, mend, model, names, offered, onBoard, openCount, purpose, refusal, split, typed } from "./models.js";
import { ask, follow, only } from "./net.js";
import { createPlayer } from "./player.js";
import { buildRace, leaveRace } from "./race.js";
import { ruleEditor } from "./rules.js";
import { createMap, drawArcs, showOpen } from "./sequence.js";
import { canRedo, canUndo, onChange, read, redo, set, state, undo } from "./state.js";
import { LEADS } from "./words.js";

const AFFORDABLE = 1000; // rows of probing that are spent without being asked
const tasks = { look: only(), probe: only(), decode: only(), imagine: only() };
let run = null; // the decoding that is stepped through
let seen = { canvas: "" }; // the last answers: candidates, entropies, head, probe, conflict
let pinned = false;
let forgetting = 0; // a timer: going from one symbol to the next shows nothing in between
let imagined = null; // how the others would move if the chosen position took a symbol
let built = ""; // what the cells on show were made for
let scrolled = ""; // the canvas whose unknowns were scrolled to
let drawCells = () => {};

const before = () => (state.pass > 1 ? run.steps[state.pass - 2].text : state.canvas); // what the pass on show was decided from
const complain = (error) => say(error.message, true);
const player = createPlayer($("#player"), (to) => set({ pass: to }));
const fromHead = () => model().head && state.mi === "head";

function currentView() {
  const step = run && state.pass ? run.steps[state.pass - 1] : null;
  const [text, start] = [split(step?.text ?? state.canvas), split(state.canvas)];
  const fits = seen.canvas === before() && seen.model === state.model;
  const preview = imagined?.canvas === before() && imagined.model === state.model ? imagined : null;
  const candidates = preview?.candidates ?? (fits ? seen.candidates ?? null : null);
  const conflict = fits ? seen.conflict ?? null : null;
  const mi = fits ? seen.map ?? seen[fromHead() ? "head" : "probe"] ?? null : null;
  const reasons = step?.waiting ?? {};
  const broken = run?.result?.broken;
  const wrong = conflict?.positions ?? (broken && state.pass >= broken.pass ? broken.positions : []);
  return {
    text: preview ? text.with(preview.cell, preview.symbol) : text, candidates, conflict, mi, reasons, pinned, before: before(), cell: state.cell, wrong: new Set(wrong),
    most: largest(mi?.matrix), ceiling: Math.log(model().size), entropies: preview?.entropies ?? ((fits && seen.entropies) || []), preview,
    focus: Boolean(!preview && state.cell !== null && mi && (mi.kind === "map" || candidates?.[state.cell])), // whether cells show what they share with the chosen one
    open: mi?.kind === "map" ? text.map((_, i) => i) : (candidates ?? []).flatMap((row, i) => (row ? [i] : [])),
    fresh: new Set(preview ? [preview.cell] : step ? Object.keys(step.filled).map(Number) : []),
    earlier: new Set(text.flatMap((symbol, i) => (!isOpen(symbol) && isOpen(start[i]) ? [i] : []))),
    blocker: reasons[state.cell]?.on ?? null,
  };
}

function renderControls() {
  const view = state.view === "race" ? "race" : onBoard() ? "board" : "sequence";
  document.body.dataset.view = view;
  $("#lead span").textContent = LEADS[view];
  for (const button of document.querySelectorAll("[data-view]")) if (button.matches("button")) button.setAttribute("aria-current", button.dataset.view === view);
  $("[data-view=board]:is(button)").disabled = model().side === null;
  for (const button of document.querySelectorAll("[data-mi]")) {
    button.setAttribute("aria-pressed", (button.dataset.mi === "head") === Boolean(fromHead()));
    button.disabled = button.dataset.mi === "head" && !model().head;
  }
  $("#random").hidden = !model().puzzles;
  $("#undo").disabled = !canUndo();
  $("#redo").disabled = !canRedo();
  $("#model").value = state.model;
  if (document.activeElement !== $("#canvas")) $("#canvas").value = state.canvas;
  for (const id of ["seed", "temperature"]) $(`#${id}`).value = state[id];
  $("#greedy").checked = chosen().greedy;
  $("#verify").checked = state.verify;
}

function render() {
  renderControls();
  if (state.view === "race") return;
  const view = currentView();
  const [entropy, shared] = document.querySelectorAll("[data-shade]");
  drawLegend(entropy, "Uncertainty", view.ceiling, "entropy", !view.focus);
  drawLegend(shared, view.focus ? `Shared with ${names(state.cell)}` : "Shared with a position", view.most, "mi", view.focus);
  shared.disabled = !view.most;
  drawCells(view);
  if (!onBoard()) {
    if (view.open.length && scrolled !== built) (scrolled = built), showOpen(view.open);
    drawArcs(view, view.text.length);
    drawMap(view);
  }
  source(view, model().head);
  inspect(view, names, actions);
  player.show(state.pass, run?.steps.length ?? 0);
  explain(run, state.pass, names, actions);
  $("#run").disabled = Boolean(view.conflict) || !openCount(state.canvas);
  $("#run-map").hidden = Boolean(view.mi) || openCount(before()) > 0 || onBoard() || !$("#progress").hidden;
  $("#run-probe").hidden = Boolean(view.mi) || !view.open.length || !$("#progress").hidden || fromHead();
}

const actions = {
  hover: (i) => !pinned && i !== state.cell && set({ cell: i }),
  pick: (i) => {
    pinned = !(pinned && state.cell === i);
    set({ cell: i });
  },
  fill: (i, symbol) => {
    const { text } = currentView();
    pinned = true;
    set({ canvas: join(text.with(i, symbol ?? model().blanks[0])), cell: i });
  },
  /** What the others' candidates would become if this position took a symbol; null = as they are. */
  imagine: (i, symbol) => {
    const [name, canvas] = [state.model, before()];
    clearTimeout(forgetting);
    if (symbol === null) return tasks.imagine.abort(), (forgetting = setTimeout(() => imagined && ((imagined = null), render()), 80));
    return tasks.imagine((signal) => ask("api/imagine", { model: name, canvas, position: i, symbol }, signal))
      .then((found) => found && ((imagined = { ...found, canvas, model: name, cell: i, symbol }), render()), complain);
  },
  keep: () => set({ canvas: join(currentView().text) }),
  /** From one shading to the other: lets go, or holds the position that shares most. */
  shade: (kind) => {
    const top = currentView().mi?.strongest[0];
    pinned = kind === "mi" && Boolean(top);
    set({ cell: pinned ? state.cell ?? top.i : null });
  },
};
const drawMap = createMap($("#map"), (i, j) => {
  const value = currentView().mi?.matrix[i]?.[j] ?? 0;
  $("#readout").textContent = `${names(i)} – ${names(j)}: ${value.toFixed(3)} nats`;
  actions.hover(i);
});

async function look() {
  const canvas = before();
  if (seen.canvas === canvas && seen.model === state.model) return seen.conflict || say(""), measure();
  tasks.probe.abort();
  $("#progress").hidden = true;
  const wrong = refusal(canvas);
  if (wrong || !openCount(canvas)) tasks.look.abort();
  const nothing = { candidates: split(canvas).map(() => null), entropies: [], mi: null, conflict: wrong };
  const found = wrong || !openCount(canvas) ? nothing : await tasks.look((signal) => ask("api/look", { model: state.model, canvas }, signal));
  if (!found) return undefined;
  seen = { canvas, model: state.model, ...found, head: found.mi };
  say(found.conflict ? `Nothing completes this canvas: ${found.conflict.message}.` : "", true);
  render();
  return measure();
}

function measure(asked = false) {
  const wanted = state.view !== "race" && !fromHead() && !seen.probe && !seen.conflict && openCount(seen.canvas) > 0;
  const affordable = openCount(seen.canvas) * model().tried <= AFFORDABLE;
  if (!wanted) tasks.probe.abort();
  return wanted && (affordable || asked) ? probe() : undefined;
}

async function probe(path = "api/probe", into = "probe") {
  const box = $("#progress");
  const { canvas } = seen;
  box.hidden = false;
  box.children[0].value = 0;
  box.children[1].textContent = "waiting";
  render();
  try {
    const found = await tasks.probe((signal) => follow(path, { model: state.model, canvas }, signal, ({ rows, total }) => {
      box.children[0].value = total ? rows / total : 0;
      box.children[1].textContent = `${rows} of ${total || "…"} sequences`;
    }));
    if (found && seen.canvas === canvas) seen[into] = found.mi;
    if (found) box.hidden = true;
  } catch (error) {
    box.hidden = true;
    throw error;
  } finally {
    render();
  }
}

async function decode() {
  const started = (run = { steps: [], result: null });
  player.stop();
  set({ pass: 0 });
  const { model: name, canvas, seed, temperature, verify } = state;
  const { rule, greedy } = chosen();
  const result = await tasks.decode((signal) => follow("api/decode", { model: name, canvas, rule, seed, temperature, greedy, verify }, signal, (line) => {
    if (line.pass && run === started) run.steps.push(line.pass);
    if (line.pass) render();
  }));
  if (result && run === started) run.result = result;
  render();
}

function build() {
  const advice = { purpose: purpose(), taken: state.rule === null };
  ruleEditor($("#rule"), offered.rules, model(), chosen().rule, (rule) => set({ rule }), advice);
  if (state.view === "race") return buildRace(offered.rules, model());
  leaveRace();
  $("#readout").textContent = "The open positions, each with each. Point at a pair.";
  const length = split(state.canvas).length;
  const shape = `${onBoard()} ${state.model} ${length}`;
  if (shape === built) return undefined;
  built = shape;
  drawCells = createCells(onBoard() ? $("#board") : $("#strip"), model(), length, names, actions);
  return undefined;
}

onChange((changes) => {
  const has = (...keys) => keys.some((key) => key in changes);
  if (has("canvas", "model", "rule", "seed", "temperature", "greedy", "verify")) {
    tasks.decode.abort();
    player.stop();
    run = null;
    state.pass = 0;
  }
  if (has("model", "view", "canvas", "rule", "race", "seed", "temperature", "greedy", "verify")) build();
  render();
  if (has("canvas", "model", "pass", "mi", "view")) look().catch(complain);
});

/** What was typed, as a canvas; a text is cut by the model's own tokenizer. */
const cut = async (text) => (model().text ? (await ask("api/tokens", { model: state.model, canvas: text })).canvas : typed(text));

function listen() {
  const on = (id, event, act) => $(id).addEventListener(event, act);
  const all = (key, act) => {
    for (const button of document.querySelectorAll(`button[data-${key}]`)) button.addEventListener("click", () => act(button.dataset[key]));
  };
  all("view", (view) => ((pinned = false), set({ view, cell: null })));
  all("mi", (mi) => set({ mi }));
  all("shade", actions.shade);
  all("export", (kind) => save(kind, currentView(), model(), onBoard()).catch(complain));
  for (const id of ["greedy", "verify"]) on(`#${id}`, "change", (event) => set({ [id]: event.target.checked }));
  for (const id of ["seed", "temperature"]) on(`#${id}`, "change", (event) => event.target.checkValidity() && set({ [id]: Number(event.target.value) }));
  on("#model", "change", (event) => set({ model: event.target.value, canvas: example(offered.models.find((one) => one.name === event.target.value)), cell: null }));
  on("#undo", "click", undo);
  on("#redo", "click", redo);
  on("#run", "click", () => decode().then(() => run?.result && player.start()).catch((error) => ((run = null), render(), complain(error))));
  on("#run-probe", "click", () => measure(true).catch(complain));
  on("#run-map", "click", () => probe("api/map", "map").catch(complain));
  on("#cancel", "click", () => (tasks.probe.abort(), ($("#progress").hidden = true), render()));
  on("#theme", "click", () => (theme(isDark() ? "light" : "dark"), render()));
  on("#share", "click", () => navigator.clipboard.writeText(location.href).then(() => say("The link is copied."), () => say(`The link: ${location.href}`)));
  on("#clear", "click", () => set({ canvas: blank(split(state.canvas).length), cell: null }));
  on("#draw", "click", () => ask(`api/puzzle?givens=${Number($("#givens").value)}&seed=${Math.floor(Math.random() * 2 ** 31)}`).then(({ canvas }) => set({ canvas, cell: null }), complain));
  on("#entry", "submit", (event) => {
    event.preventDefault();
    cut($("#canvas").value).then((canvas) => {
      const wrong = refusal(canvas);
      if (wrong && !wrong.positions.length) say(wrong.message, true);
      else $("#canvas").blur(), set({ canvas, cell: null });
    }).catch(complain);
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input:not([type=range], [type=checkbox])")) return;
    if (event.key === "Escape") (pinned = false), set({ cell: null });
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") event.preventDefault(), event.shiftKey ? redo() : undo();
  });
  addEventListener("hashchange", () => location.reload());
  addEventListener("resize", () => render());
}

async function start() {
  theme();
  listenForHelp();
  Object.assign(offered, await ask("api/models"));
  const wrong = [...read(), ...mend()];
  const wanted = state.pass;
  $("#model").replaceChildren(...offered.models.map((one) => new Option(one.name, one.name)));
  listen();
  pinned = state.cell !== null;
  set({ model: state.model, canvas: state.canvas }, false);
  if (wrong.length) notify(`This link is broken: ${wrong.join("; ")}. The rest of it is shown.`);
  if (wanted) await decode().then(() => set({ pass: Math.min(wanted, run.steps.length) }));
  tourOnce();
}

start().catch(complain);
