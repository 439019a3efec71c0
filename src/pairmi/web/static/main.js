// Everything tied together: what the user chose, what the server says of it, and what is drawn.

import { createCells } from "./cells.js";
import { drawLegend, isDark, largest, theme } from "./colour.js";
import { $, say } from "./dom.js";
import { save } from "./export.js";
import { explain, inspect } from "./inspect.js";
import { ask, follow, only } from "./net.js";
import { createPlayer } from "./player.js";
import { buildRace, leaveRace } from "./race.js";
import { ruleEditor } from "./rules.js";
import { createMap, drawArcs } from "./sequence.js";
import { canRedo, canUndo, example, onChange, read, redo, set, state, undo } from "./state.js";

const AFFORDABLE = 1000; // rows of probing that are spent without being asked
const tasks = { look: only(), probe: only(), decode: only() };
let offered = { models: [], rules: [] };
let run = null; // the decoding that is stepped through
let seen = { canvas: "" }; // the last answers: probs, entropies, head, probe
let pinned = false;
let built = ""; // what the cells on show were made for
let drawCells = () => {};

const model = () => offered.models.find((one) => one.name === state.model);
const onBoard = () => state.view === "board" && model().side !== null;
const names = (i) => (model().side ? `r${Math.floor(i / model().side) + 1}c${(i % model().side) + 1}` : String(i + 1));
const before = () => (state.pass > 1 ? run.steps[state.pass - 2].text : state.canvas); // what the pass on show was decided from
const isOpen = (symbol) => model().blanks.includes(symbol);
const openCount = (canvas) => [...canvas].filter(isOpen).length;
const fits = (canvas, { length }) => canvas.length > 0 && (length === null || canvas.length === length);
const complain = (error) => say(error.message, true);
const player = createPlayer($("#player"), (to) => set({ pass: to }));

function currentView() {
  const step = run && state.pass ? run.steps[state.pass - 1] : null;
  const text = step?.text ?? state.canvas;
  const fresh = new Set(step ? Object.keys(step.filled).map(Number) : []);
  const broken = run?.result?.broken;
  const mi = seen.canvas === before() ? seen[model().head ? state.mi : "probe"] ?? null : null;
  const reasons = step?.waiting ?? {};
  const probs = seen.canvas === before() ? seen.probs : null;
  return {
    text, probs, before: before(), mi, most: largest(mi?.matrix), fresh, reasons, pinned, cell: state.cell,
    open: (probs ?? []).flatMap((row, i) => (row ? [i] : [])),
    entropies: seen.entropies ?? [],
    earlier: new Set([...text].flatMap((symbol, i) => (!isOpen(symbol) && isOpen(state.canvas[i]) ? [i] : []))),
    blocker: reasons[state.cell]?.on ?? null,
    wrong: new Set(broken && state.pass >= broken.pass ? broken.positions : []),
  };
}

function render() {
  const view = currentView();
  const racing = state.view === "race";
  document.body.dataset.view = racing ? "race" : onBoard() ? "board" : "sequence";
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-current", button.dataset.view === state.view);
  for (const button of document.querySelectorAll("[data-mi]")) {
    button.setAttribute("aria-pressed", button.dataset.mi === (model().head ? state.mi : "probe"));
    button.disabled = button.dataset.mi === "head" && !model().head;
  }
  $("#random").hidden = !model().puzzles;
  $("#undo").disabled = !canUndo();
  $("#redo").disabled = !canRedo();
  if (document.activeElement !== $("#canvas")) $("#canvas").value = state.canvas;
  for (const id of ["seed", "temperature"]) $(`#${id}`).value = state[id];
  for (const id of ["greedy", "verify"]) $(`#${id}`).checked = state[id];
  if (racing) return;
  drawLegend($("#legend"), view.most);
  drawCells(view);
  if (!onBoard()) {
    drawArcs(view, view.text.length);
    drawMap(view);
  }
  inspect(view, model(), names, actions);
  player.show(state.pass, run?.steps.length ?? 0);
  explain(run, state.pass, names, actions);
  $("#run-probe").hidden = Boolean(view.mi) || !view.probs || !$("#progress").hidden || (model().head && state.mi === "head");
}

const actions = {
  hover: (i) => !pinned && i !== state.cell && set({ cell: i }),
  pick: (i) => {
    pinned = !(pinned && state.cell === i);
    set({ cell: i });
  },
  fill: (i, symbol) => {
    const text = currentView().text;
    pinned = true;
    set({ canvas: text.slice(0, i) + (symbol ?? ".") + text.slice(i + 1), cell: i });
  },
  keep: () => set({ canvas: currentView().text }),
};
const drawMap = createMap($("#map"), (i, j) => {
  const value = currentView().mi?.matrix[i]?.[j] ?? 0;
  $("#readout").textContent = `${names(i)} – ${names(j)}: ${value.toFixed(3)} nats`;
  actions.hover(i);
});

async function look() {
  const canvas = before();
  if (seen.canvas === canvas && seen.model === state.model) return say(""), measure();
  tasks.probe.abort();
  $("#progress").hidden = true;
  if (!openCount(canvas)) {
    tasks.look.abort();
    seen = { canvas, model: state.model, probs: [...canvas].map(() => null), entropies: [], head: null };
    return render();
  }
  const found = await tasks.look((signal) => ask("api/look", { model: state.model, canvas }, signal));
  if (!found) return undefined;
  seen = { canvas, model: state.model, probs: found.probs, entropies: found.entropies, head: found.mi };
  say("");
  render();
  return measure();
}

function measure(asked = false) {
  const wanted = state.view !== "race" && (state.mi === "probe" || !model().head) && !seen.probe && openCount(seen.canvas) > 0;
  const affordable = openCount(seen.canvas) * model().symbols.length <= AFFORDABLE;
  if (!wanted) tasks.probe.abort();
  return wanted && (affordable || asked) ? probe() : undefined;
}

async function probe() {
  const box = $("#progress");
  const { canvas } = seen;
  box.hidden = false;
  box.children[0].value = 0;
  box.children[1].textContent = "waiting";
  render();
  try {
    const found = await tasks.probe((signal) => follow("api/probe", { model: state.model, canvas }, signal, ({ rows, total }) => {
      box.children[0].value = total ? rows / total : 0;
      box.children[1].textContent = `${rows} of ${total || "…"} sequences`;
    }));
    if (found && seen.canvas === canvas) seen.probe = found.mi;
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
  const { model: name, canvas, rule, seed, temperature, greedy, verify } = state;
  const result = await tasks.decode((signal) => follow("api/decode", { model: name, canvas, rule, seed, temperature, greedy, verify }, signal, (line) => {
    if (line.pass && run === started) run.steps.push(line.pass);
    if (line.pass) render();
  }));
  if (result && run === started) run.result = result;
  render();
}

function build() {
  ruleEditor($("#rule"), offered.rules, model(), state.rule, (rule) => set({ rule }));
  if (state.view === "race") return buildRace(offered.rules, model());
  leaveRace();
  $("#readout").textContent = "The open positions, each with each. Point at a pair.";
  const shape = `${onBoard()} ${state.model} ${state.canvas.length}`;
  if (shape === built) return undefined;
  built = shape;
  drawCells = createCells(onBoard() ? $("#board") : $("#strip"), model(), state.canvas.length, names, actions);
  const first = [...state.canvas].findIndex(isOpen);
  if (!onBoard()) $("#scroller").scrollLeft = ($("#strip").children[first]?.offsetLeft ?? 0) - 200;
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

function listen() {
  const on = (id, event, act) => $(id).addEventListener(event, act);
  for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => set({ view: button.dataset.view, cell: null }));
  for (const button of document.querySelectorAll("[data-mi]")) button.addEventListener("click", () => set({ mi: button.dataset.mi }));
  for (const button of document.querySelectorAll("[data-export]")) button.addEventListener("click", () => save(button.dataset.export, currentView(), model(), onBoard(), names).catch(complain));
  for (const id of ["greedy", "verify"]) on(`#${id}`, "change", (event) => set({ [id]: event.target.checked }));
  for (const id of ["seed", "temperature"]) on(`#${id}`, "change", (event) => event.target.checkValidity() && set({ [id]: Number(event.target.value) }));
  on("#model", "change", (event) => set({ model: event.target.value, canvas: example(offered.models.find((one) => one.name === event.target.value)), cell: null }));
  on("#undo", "click", undo);
  on("#redo", "click", redo);
  on("#run", "click", () => decode().then(() => run?.result && player.start()).catch((error) => ((run = null), render(), complain(error))));
  on("#run-probe", "click", () => measure(true).catch(complain));
  on("#cancel", "click", () => (tasks.probe.abort(), ($("#progress").hidden = true), render()));
  on("#theme", "click", () => (theme(isDark() ? "light" : "dark"), render()));
  on("#share", "click", () => navigator.clipboard.writeText(location.href).then(() => say("The link is copied."), () => say(`The link: ${location.href}`)));
  on("#clear", "click", () => set({ canvas: ".".repeat(state.canvas.length), cell: null }));
  on("#draw", "click", () => ask(`api/puzzle?givens=${Number($("#givens").value)}&seed=${Math.floor(Math.random() * 2 ** 31)}`).then(({ canvas }) => set({ canvas, cell: null }), complain));
  on("#entry", "submit", (event) => {
    event.preventDefault();
    $("#canvas").blur();
    const canvas = $("#canvas").value.replace(/[\s|+-]/g, "").replace(/[0*]/g, ".");
    if (fits(canvas, model())) set({ canvas, cell: null });
    else say(`expected ${model().length ?? "at least one"} positions, got ${canvas.length}`, true);
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
  offered = await ask("api/models");
  read();
  const wanted = state.pass;
  const known = model() ?? offered.models[0];
  $("#model").replaceChildren(...offered.models.map((one) => new Option(one.name, one.name, false, one === known)));
  listen();
  pinned = state.cell !== null;
  set({ model: known.name, canvas: model() && fits(state.canvas, known) ? state.canvas : example(known) }, false);
  if (wanted) await decode().then(() => set({ pass: Math.min(wanted, run.steps.length) }));
}

start().catch(complain);
