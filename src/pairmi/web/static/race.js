// Two to four rules side by side on one canvas, pass by pass.

import { $, h, refill, say } from "./dom.js";
import { follow, only } from "./net.js";
import { createPlayer } from "./player.js";
import { ruleEditor } from "./rules.js";
import { set, state } from "./state.js";

const COUNTS = [2, 3, 4];
const task = only();
let lanes = [];
let player = null;
let position = 0;

function miniature(lane, model) {
  const board = h("div", { className: model.side ? "mini grid" : "mini text" });
  board.style.setProperty("--side", model.side ?? 1);
  board.classList.toggle("small", model.side === 4);
  lane.cells = [...state.canvas].map((symbol, i) => {
    const cell = h("span", {}, model.blanks.includes(symbol) ? "" : symbol);
    const order = Math.sqrt(model.side ?? 0);
    cell.classList.toggle("right", model.side && i % model.side % order === order - 1 && i % model.side < model.side - 1);
    cell.classList.toggle("below", model.side && Math.floor(i / model.side) % order === order - 1 && i < model.side * (model.side - 1));
    return cell;
  });
  board.append(...lane.cells);
  return board;
}

function paint(model) {
  const longest = Math.max(0, ...lanes.map((lane) => lane.steps.length));
  position = Math.min(position, longest);
  player.show(position, longest);
  for (const lane of lanes) {
    const at = Math.min(position, lane.steps.length);
    const step = lane.steps[at - 1];
    const text = step?.text ?? state.canvas;
    const broken = lane.result?.broken;
    lane.cells.forEach((cell, i) => {
      const open = model.blanks.includes(text[i]);
      cell.textContent = open ? (model.side ? "" : "·") : text[i];
      cell.classList.toggle("earlier", !open && model.blanks.includes(state.canvas[i]));
      cell.classList.toggle("fresh", at === position && Boolean(step && i in step.filled));
      cell.classList.toggle("wrong", Boolean(broken && at >= broken.pass && broken.positions.includes(i)));
    });
    const left = [...text].filter((symbol) => model.blanks.includes(symbol)).length;
    lane.passes.textContent = step ? `${step.passes} ${step.passes === 1 ? "pass" : "passes"}${left ? `, ${left} open` : ""}` : lane.waiting ? "waiting" : "";
    const over = lane.result && at === lane.steps.length;
    lane.cost.textContent = over ? `${lane.result.seconds.toFixed(2)} s, ${lane.result.rows} sequences` : "";
    lane.end.className = !over ? "" : broken ? "bad" : "good";
    lane.end.textContent = lane.error ?? (!over ? "" : broken ? `broke in pass ${broken.pass}: ${broken.message}` : lane.result.verdict);
  }
}

async function start(model, canvas) {
  position = 0;
  for (const lane of lanes) Object.assign(lane, { steps: [], result: null, error: null, waiting: true });
  paint(model);
  await task((signal) => Promise.all(lanes.map(async (lane) => {
    const body = { model: model.name, canvas, rule: lane.rule, seed: state.seed, temperature: state.temperature, greedy: state.greedy, verify: state.verify };
    try {
      lane.result = await follow("api/decode", body, signal, (line) => line.pass && lane.steps.push(line.pass));
    } catch (error) {
      if (signal.aborted) throw error;
      lane.error = error.message;
    }
    lane.waiting = false;
    paint(model);
  })));
  if (lanes.every((lane) => lane.result)) {
    say("");
    player.start();
  }
}

/** Rebuilds the race for the current canvas and rules. */
export function buildRace(rules, model) {
  task.abort();
  player?.stop();
  position = 0;
  const change = (n, spec) => set({ race: state.race.map((old, m) => (m === n ? spec : old)) });
  lanes = state.race.map((rule, n) => {
    const lane = { rule, steps: [], result: null, error: null, waiting: false, passes: h("b"), cost: h("span"), end: h("p") };
    const editor = h("div");
    ruleEditor(editor, rules, model, rule, (spec) => change(n, spec));
    lane.column = h("article", { "aria-label": rule }, editor, miniature(lane, model), h("p", {}, lane.passes, " ", lane.cost), lane.end);
    return lane;
  });
  const count = h("select", { "aria-label": "Number of rules", onchange: (event) => set({ race: [...state.race, "threshold", "mi-bound", "eb"].slice(0, Number(event.target.value)) }) },
    ...COUNTS.map((n) => h("option", { value: n, selected: n === lanes.length }, `${n} rules`)));
  const controls = h("div", { className: "player" });
  refill(
    $("#race"),
    h("div", { className: "row" }, h("button", { type: "button", className: "main", id: "start-race", onclick: () => start(model, state.canvas) }, "Race"), count, controls),
    h("div", { className: "lanes" }, ...lanes.map((lane) => lane.column)),
  );
  player = createPlayer(controls, (to) => ((position = to), paint(model)));
  paint(model);
}

export const leaveRace = () => (task.abort(), player?.stop());
