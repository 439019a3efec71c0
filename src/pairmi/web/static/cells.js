// Positions as buttons, on a board or on a strip: symbols, candidates, colours, and the keyboard.

import { colour, ink } from "./colour.js";
import { h, nats, percent } from "./dom.js";
import { isOpen, short } from "./models.js";

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Thick lines between the boxes of a board. */
export function frame(cell, i, side) {
  const order = Math.sqrt(side);
  const [row, column] = [Math.floor(i / side), i % side];
  cell.classList.toggle("right", column % order === order - 1 && column < side - 1);
  cell.classList.toggle("below", row % order === order - 1 && row < side - 1);
}

/** Makes one button per position in `place`; `actions` are hover(i), pick(i), fill(i, symbol or null). */
export function createCells(place, model, length, names, actions) {
  const side = place.id === "strip" ? null : model.side;
  const cells = Array.from({ length }, (_, i) => {
    const cell = h("button", { type: "button", className: "cell", tabIndex: i ? -1 : 0, dataset: { i } });
    if (side) frame(cell, i, side);
    else if (model.spaced || i === 0 || (i + 1) % 10 === 0) cell.dataset.number = i + 1;
    cell.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && actions.hover(i));
    cell.addEventListener("focus", () => {
      for (const other of cells) other.tabIndex = other === cell ? 0 : -1;
      actions.hover(i);
    });
    cell.addEventListener("click", (event) => {
      const symbol = event.target.dataset.symbol;
      if (symbol && cell.classList.contains("pinned")) actions.fill(i, symbol);
      else actions.pick(i);
    });
    cell.addEventListener("dblclick", () => cell.dataset.best && actions.fill(i, cell.dataset.best));
    return cell;
  });
  place.replaceChildren(...cells);
  place.style.setProperty("--side", side ?? length);
  place.classList.toggle("small", side !== null && side < 9);
  place.classList.toggle("spaced", model.spaced);
  place.onpointerleave = () => actions.hover(null);
  place.onkeydown = (event) => keyed(event, cells, side, model, actions);
  return (view) => cells.forEach((cell, i) => draw(cell, i, view, model, names, side));
}

function keyed(event, cells, side, model, actions) {
  const i = Number(event.target.dataset.i);
  if (Number.isNaN(i) || event.ctrlKey || event.metaKey || event.altKey) return;
  const symbol = model.symbols.find((one) => one.toLowerCase() === event.key.toLowerCase());
  if (event.key in MOVES) {
    const [x, y] = MOVES[event.key];
    const to = side ? (Math.floor(i / side) + y + side) % side * side + ((i % side) + x + side) % side : i + x;
    cells[to]?.focus();
  } else if (symbol) actions.fill(i, symbol);
  else if (["Backspace", "Delete"].includes(event.key) || model.blanks.includes(event.key)) actions.fill(i, null);
  else if (event.key === "Enter" || event.key === " ") actions.pick(i);
  else return;
  event.preventDefault();
}

function candidates(ranked, model, side) {
  const shown = side ? model.symbols.map((symbol) => ranked.find(([one]) => one === symbol)) : ranked.slice(0, 3);
  return shown.map(([symbol, p]) => {
    const made = h("span", { className: p < 0.005 ? "none" : "", dataset: { symbol }, title: symbol.length > 1 ? symbol : "" }, short(symbol));
    made.style.fontSize = `${0.75 + 0.5 * Math.sqrt(p)}em`;
    made.style.fontWeight = p > 0.5 ? 800 : p > 0.15 ? 600 : 400;
    return made;
  });
}

/** The colours of a cell: what it shares with the chosen one, or its own uncertainty. */
function shade(cell, i, view, shared) {
  const open = Boolean(view.candidates?.[i]);
  const share = view.focus ? shared / (view.most || 1) : open ? view.entropies[i] / view.ceiling : 0;
  const scale = view.focus ? "mi" : "entropy";
  cell.style.background = share > 0 ? colour(share, scale) : "";
  cell.style.color = share > 0 ? ink(share, scale) : "";
  cell.classList.toggle("shaded", share > 0);
}

function draw(cell, i, view, model, names, side) {
  const symbol = view.text[i];
  const open = isOpen(symbol);
  const ranked = view.candidates?.[i] ?? null;
  const shared = view.focus && view.cell !== i ? view.mi.matrix[view.cell]?.[i] ?? 0 : 0;
  shade(cell, i, view, shared);
  const classes = { open, picked: view.cell === i, pinned: view.pinned && view.cell === i, fresh: view.fresh.has(i), earlier: view.earlier.has(i), blocker: view.blocker === i, wrong: view.wrong.has(i) };
  for (const [key, on] of Object.entries(classes)) cell.classList.toggle(key, Boolean(on));
  const content = open && ranked ? h("span", { className: "candidates", "aria-hidden": true }, ...candidates(ranked, model, side)) : h("span", { className: "symbol", "aria-hidden": true }, open ? "" : short(symbol));
  const number = shared >= 0.005 ? h("span", { className: "nats", "aria-hidden": true }, nats(shared)) : null;
  cell.dataset.best = open && ranked ? ranked[0][0] : "";
  if (!open && symbol.length > 1) cell.title = symbol;
  const told = open ? (ranked ? `open, likeliest ${ranked[0][0]} with ${percent(ranked[0][1])}` : "open") : symbol;
  const marked = classes.wrong ? ", in conflict" : classes.fresh ? ", filled in this pass" : "";
  const spoken = `${names(i)}: ${told}${marked}${number ? `, shares ${shared.toFixed(2)} nats with ${names(view.cell)}` : ""}`;
  cell.replaceChildren(...[h("span", { className: "hidden spoken" }, spoken), content, number].filter(Boolean));
}
