// Positions as buttons, on a board or on a strip: symbols, candidates, colours, and the keyboard.

import { colour, ink } from "./colour.js";
import { h, nats } from "./dom.js";

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Makes one button per position in `place`; `actions` are hover(i), pick(i), fill(i, symbol or null). */
export function createCells(place, model, length, names, actions) {
  const side = place.id === "strip" ? null : model.side;
  const cells = Array.from({ length }, (_, i) => {
    const cell = h("button", { type: "button", className: "cell", tabIndex: i ? -1 : 0, dataset: { i } });
    if (side) {
      const order = Math.sqrt(side);
      const [row, column] = [Math.floor(i / side), i % side];
      cell.classList.toggle("right", column % order === order - 1 && column < side - 1);
      cell.classList.toggle("below", row % order === order - 1 && row < side - 1);
    } else if ((i + 1) % 10 === 0) cell.dataset.number = i + 1;
    cell.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && actions.hover(i));
    cell.addEventListener("focus", () => actions.hover(i));
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
  place.onkeydown = (event) => {
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
  };
  return (view) => cells.forEach((cell, i) => draw(cell, i, view, model, names(i), side));
}

function candidates(probs, model, side) {
  const ranked = probs.map((p, n) => [p, model.symbols[n]]);
  const shown = side ? ranked : ranked.sort((a, b) => b[0] - a[0]).slice(0, 3);
  return shown.map(([p, symbol]) => {
    const made = h("span", { className: p < 0.005 ? "faint" : "", dataset: { symbol } }, symbol);
    made.style.opacity = p < 0.005 ? "" : 0.35 + 0.65 * Math.sqrt(p);
    made.style.fontWeight = p > 0.5 ? 700 : 400;
    return made;
  });
}

function draw(cell, i, view, model, name, side) {
  const symbol = view.text[i];
  const open = model.blanks.includes(symbol);
  const probs = view.probs?.[i] ?? null;
  const shared = view.mi && view.cell !== null && view.cell !== i ? view.mi.matrix[view.cell]?.[i] ?? 0 : 0;
  const focus = view.cell !== null && view.mi && view.probs?.[view.cell];
  const share = focus ? shared / (view.most || 1) : 0;
  cell.style.background = focus && share > 0 ? colour(share) : "";
  cell.style.color = focus && share > 0.02 ? ink(share) : "";
  cell.style.setProperty("--shade", !focus && probs ? `${Math.round((view.entropies[i] / Math.log(model.symbols.length)) * 60)}%` : "0%");
  const classes = { open, picked: view.cell === i, pinned: view.pinned && view.cell === i, fresh: view.fresh.has(i), earlier: view.earlier.has(i), blocker: view.blocker === i, wrong: view.wrong.has(i) };
  for (const [key, on] of Object.entries(classes)) cell.classList.toggle(key, Boolean(on));
  const content = open && probs ? h("span", { className: "candidates" }, ...candidates(probs, model, side)) : h("span", { className: "symbol" }, open ? "" : symbol);
  const number = focus && shared >= 0.005 ? h("span", { className: "nats" }, nats(shared)) : null;
  cell.replaceChildren(...[content, number].filter(Boolean));
  cell.dataset.best = open && probs ? model.symbols[probs.indexOf(Math.max(...probs))] : "";
  const told = open ? (probs ? `open, likeliest ${cell.dataset.best}` : "open") : symbol;
  cell.setAttribute("aria-label", `${name}: ${told}${number ? `, ${shared.toFixed(2)} nats` : ""}`);
}
