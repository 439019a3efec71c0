// Two to four rules side by side on one canvas, pass by pass, as the passes come.

import { frame } from "./cells.js";
import { $, count, h, refill, say } from "./dom.js";
import { list, mark } from "./help.js";
import { chosen, isOpen, short, split } from "./models.js";
import { follow, only } from "./net.js";
import { createPlayer } from "./player.js";
import { inWords, parse, ruleEditor, shown } from "./rules.js";
import { set, state } from "./state.js";
import { TERMS } from "./words.js";

const COUNTS = [2, 3, 4];
const SPARE = ["threshold", "mi-bound", "eb:budget=0.1", "mi-guided"];
const task = only();
const pricing = only();
let lanes = [];
let player = null;
let position = 0;

function miniature(lane, model) {
  const board = h("div", { className: model.side ? "mini grid" : "mini text", role: "img" });
  board.style.setProperty("--side", model.side ?? 1);
  board.classList.toggle("small", model.side === 4);
  lane.cells = split(state.canvas).map((_, i) => {
    const cell = h("span");
    if (model.side) frame(cell, i, model.side);
    return cell;
  });
  board.append(...lane.cells);
  return board;
}

function paintLane(lane, model, start, best) {
  const at = Math.min(position, lane.steps.length);
  const step = lane.steps[at - 1];
  const text = step ? split(step.text) : start;
  const broken = lane.result?.broken;
  lane.cells.forEach((cell, i) => {
    const open = isOpen(text[i]);
    cell.textContent = open ? (model.side ? "" : "·") : short(text[i], 12);
    cell.classList.toggle("earlier", !open && isOpen(start[i]));
    cell.classList.toggle("fresh", at === position && Boolean(step && i in step.filled));
    cell.classList.toggle("wrong", Boolean(broken && at >= broken.pass && broken.positions.includes(i)));
  });
  const [left, all] = [text.filter(isOpen).length, start.filter(isOpen).length];
  lane.bar.value = all ? 1 - left / all : 1;
  const over = lane.result && at === lane.steps.length;
  lane.passes.textContent = step ? count(step.passes, "pass", "passes") : lane.waiting ? "waiting…" : "0 passes";
  lane.left.textContent = over ? `${lane.result.seconds.toFixed(2)} s, ${count(lane.result.rows, "sequence")}` : step ? `${left} open` : `${all} open`;
  lane.cost.textContent = lane.price ?? "";
  lane.end.className = lane.error || broken ? "end bad" : "end good";
  lane.end.textContent = lane.error ?? (!over ? "" : broken ? `broke in pass ${broken.pass}: ${broken.message}` : `${lane.result.verdict}${best.has(lane) ? ", in the fewest passes" : ""}`);
  lane.board.setAttribute("aria-label", `${lane.rule}: ${lane.passes.textContent}, ${left} open${lane.end.textContent ? `, ${lane.end.textContent}` : ""}`);
}

function paint(model) {
  const longest = Math.max(0, ...lanes.map((lane) => lane.steps.length));
  position = Math.min(position, longest);
  player.show(position, longest);
  const right = lanes.filter((lane) => lane.result && !lane.result.broken);
  const fewest = Math.min(...right.map((lane) => lane.result.passes));
  const best = new Set(right.length > 1 && lanes.every((lane) => lane.result) ? right.filter((lane) => lane.result.passes === fewest) : []);
  const start = split(state.canvas);
  for (const lane of lanes) paintLane(lane, model, start, best);
}

async function start(model, canvas) {
  position = 0;
  for (const lane of lanes) Object.assign(lane, { steps: [], result: null, error: null, waiting: true });
  paint(model);
  player.start();
  await task((signal) => Promise.all(lanes.map(async (lane) => {
    const body = { model: model.name, canvas, rule: lane.rule, seed: state.seed, temperature: state.temperature, greedy: chosen().greedy, verify: state.verify };
    try {
      lane.result = await follow("api/decode", body, signal, (line) => line.pass && (lane.steps.push(line.pass), paint(model)));
    } catch (error) {
      if (signal.aborted) throw error;
      lane.error = error.message;
    }
    lane.waiting = false;
    paint(model);
  })));
  const ends = lanes.filter((lane) => lane.result).map((lane) => `${parse(lane.rule).name} ${lane.result.broken ? "broke" : lane.result.verdict} in ${lane.result.passes}`);
  if (ends.length) say(`Passes: ${ends.join(", ")}.`);
}

/** What each rule loses on this canvas, from a few sequences that are drawn: needs no right answer. */
async function price(model, canvas) {
  await pricing((signal) => Promise.all(lanes.map(async (lane) => {
    const tell = (text) => ((lane.price = text), paint(model));
    tell("price: waiting…");
    try {
      const body = { model: model.name, canvas, rule: lane.rule, seed: state.seed, temperature: state.temperature };
      const found = await follow("api/price", body, signal, ({ rows, total }) => tell(`price: ${Math.min(100, Math.round((100 * rows) / (total || 1)))} %`));
      const [low, high] = found.interval.map((end) => end.toPrecision(2));
      tell(found.nats < 1e-4 ? `loses nothing, in ${found.passes.toFixed(1)} passes` : `loses ${found.nats.toPrecision(2)} nats [${low}, ${high}] in ${found.passes.toFixed(1)} passes`);
    } catch (error) {
      if (signal.aborted) throw error;
      tell(error.message);
    }
  })));
}

function column(rule, n, rules, model, change) {
  const lane = { rule, steps: [], result: null, error: null, waiting: false, passes: h("b"), left: h("span"), end: h("p"), cost: h("p", { className: "quiet cost" }), price: null, bar: h("progress", { max: 1, value: 0, "aria-label": "Filled" }) };
  const editor = h("div");
  ruleEditor(editor, rules, model, rule, (spec) => change(n, spec));
  const { name } = parse(rule);
  const head = h("details", {}, h("summary", { title: "Change this rule" }, h("b", {}, name), " ", h("span", { className: "quiet" }, shown(rule))), editor);
  lane.board = miniature(lane, model);
  lane.column = h("article", { "aria-label": rule }, head, h("p", { className: "about" }, inWords(rules.find((one) => one.name === name) ?? { name })), lane.board, h("div", {}, lane.bar, h("p", { className: "tally" }, lane.passes, lane.left), lane.end, lane.cost));
  return lane;
}

/** Rebuilds the race for the current canvas and rules. */
export function buildRace(rules, model) {
  task.abort();
  pricing.abort();
  player?.stop();
  position = 0;
  const { race } = chosen();
  lanes = race.map((rule, n) => column(rule, n, rules, model, (at, spec) => set({ race: race.map((old, m) => (m === at ? spec : old)) })));
  const number = h("select", { "aria-label": "Number of rules", onchange: (event) => set({ race: [...race, ...SPARE].slice(0, Number(event.target.value)) }) },
    ...COUNTS.map((n) => h("option", { value: n, selected: n === lanes.length }, `${n} rules`)));
  const controls = h("div", { className: "player" });
  refill(
    $("#race"),
    h("div", { className: "row" }, h("button", { type: "button", className: "main", id: "start-race", onclick: () => start(model, state.canvas) }, "Start the race"), number, h("button", { type: "button", id: "price-race", onclick: () => price(model, state.canvas) }, "Price"), mark("price", () => list([TERMS.price, TERMS.nats])), controls),
    h("div", { className: "lanes", dataset: { lanes: lanes.length } }, ...lanes.map((lane) => lane.column)),
  );
  player = createPlayer(controls, (to) => ((position = to), paint(model)), { pace: 200, more: () => lanes.some((lane) => lane.waiting) });
  paint(model);
}

export const leaveRace = () => (task.abort(), pricing.abort(), player?.stop());
