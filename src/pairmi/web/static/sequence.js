// What a strip of positions has besides its cells: arcs between distant pairs, and the map of all open pairs with its axes.

import { colour, rgb } from "./colour.js";
import { $ } from "./dom.js";
import { model, names, short } from "./models.js";

const SVG = "http://www.w3.org/2000/svg";
const FONT = "11px system-ui, sans-serif";
const BAR = 64; // pixels for the colour bar and its numbers

export function drawArcs(view, length) {
  const arcs = $("#arcs");
  const cells = $("#strip").children;
  const width = $("#strip").scrollWidth;
  arcs.setAttribute("width", width);
  const far = length > 24 ? 6 : 2;
  const pairs = (view.mi?.strongest ?? []).filter((pair) => pair.j - pair.i >= far).slice(0, 24).reverse();
  const middle = (i) => cells[i].offsetLeft + cells[i].offsetWidth / 2;
  const bottom = arcs.clientHeight;
  arcs.replaceChildren(...pairs.map(({ i, j, nats }) => {
    const path = document.createElementNS(SVG, "path");
    const rise = Math.min(bottom - 4, 14 + (middle(j) - middle(i)) * 0.35);
    path.setAttribute("d", `M${middle(i)} ${bottom} C${middle(i)} ${bottom - 1.33 * rise} ${middle(j)} ${bottom - 1.33 * rise} ${middle(j)} ${bottom}`);
    path.setAttribute("stroke", colour(0.3 + (0.7 * nats) / (view.most || 1)));
    path.setAttribute("stroke-width", 1 + (3 * nats) / (view.most || 1));
    path.classList.toggle("dim", view.cell !== null && view.cell !== i && view.cell !== j);
    return path;
  }));
}

/** Scrolls the strip to where the unknowns are: in the middle if they fit, else to the first. */
export function showOpen(open) {
  const cells = $("#strip").children;
  const box = $("#scroller");
  if (!open.length || !cells.length) return;
  const [from, to] = [cells[open[0]].offsetLeft, cells[open.at(-1)].offsetLeft + cells[open.at(-1)].offsetWidth];
  box.scrollLeft = to - from < box.clientWidth ? (from + to - box.clientWidth) / 2 : from - 40;
}

/** What a position is called on an axis: its number, and the symbol that the model thinks likeliest. */
export const axisLabel = (view, i) => (model().side ? names(i) : `${names(i)} ${short(view.candidates?.[i]?.[0][0] ?? "", 6)}`);

/** The matrix between the open positions as an image of one pixel per pair. */
function pixels({ mi, most, open }) {
  const image = new ImageData(open.length, open.length);
  open.forEach((i, row) => open.forEach((j, column) => image.data.set([...rgb(mi.matrix[i][j] / (most || 1)), 255], 4 * (row * open.length + column))));
  const small = new OffscreenCanvas(open.length, open.length);
  small.getContext("2d").putImageData(image, 0, 0);
  return small;
}

function axes(pen, view, { x, y, size }, ink) {
  const step = size / view.open.length;
  const every = Math.ceil(12 / step);
  pen.fillStyle = ink;
  pen.textBaseline = "middle";
  view.open.forEach((i, n) => {
    if (n % every) return;
    const label = axisLabel(view, i);
    pen.textAlign = "right";
    pen.fillText(label, x - 5, y + (n + 0.5) * step);
    pen.save();
    pen.translate(x + (n + 0.5) * step, y - 5);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "left";
    pen.fillText(label, 0, 0);
    pen.restore();
  });
}

function colourBar(pen, most, { x, y, size }, ink, line) {
  const scale = pen.createLinearGradient(0, y + size, 0, y);
  for (const stop of [0, 0.2, 0.4, 0.6, 0.8, 1]) scale.addColorStop(stop, colour(stop));
  const left = x + size + 12;
  pen.fillStyle = scale;
  pen.fillRect(left, y, 12, size);
  pen.strokeStyle = line;
  pen.strokeRect(left + 0.5, y + 0.5, 11, size - 1);
  pen.fillStyle = ink;
  pen.textAlign = "left";
  for (const share of [0, 0.5, 1]) pen.fillText((share * most).toFixed(most < 0.1 ? 3 : 2), left + 17, Math.min(y + size - 5, Math.max(y + 6, y + size * (1 - share))));
  pen.fillText("nats", left, y - 9);
}

/** A heat map of the open positions; `hover` is told the pair under the pointer. Returns what draws a view. */
export function createMap(canvas, hover) {
  let shown = null;
  let cached = null;
  let plot = null; // where the squares are
  const paint = () => {
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    [canvas.width, canvas.height] = [width * devicePixelRatio, height * devicePixelRatio].map(Math.round);
    if (!shown?.mi || !shown.open.length || !width || !height) return;
    const key = document.documentElement.dataset.theme;
    if (cached?.matrix !== shown.mi.matrix || cached.key !== key) cached = { matrix: shown.mi.matrix, key, image: pixels(shown) };
    const style = getComputedStyle(canvas);
    const pen = canvas.getContext("2d");
    pen.scale(devicePixelRatio, devicePixelRatio);
    pen.font = FONT;
    const margin = 10 + Math.max(26, ...shown.open.map((i) => pen.measureText(axisLabel(shown, i)).width));
    const size = Math.min(width - margin - BAR, height - margin - 2);
    plot = { x: Math.max(margin, (width - size - BAR + margin) / 2), y: margin, size };
    canvas.dataset.plot = [plot.x, plot.y, size].map(Math.round).join(" ");
    pen.imageSmoothingEnabled = false;
    pen.drawImage(cached.image, plot.x, plot.y, size, size);
    pen.strokeStyle = style.borderColor;
    pen.strokeRect(plot.x - 0.5, plot.y - 0.5, size + 1, size + 1);
    axes(pen, shown, plot, style.color);
    colourBar(pen, shown.most, plot, style.color, style.borderColor);
    const [step, at] = [size / shown.open.length, shown.open.indexOf(shown.cell)];
    if (at < 0) return;
    pen.strokeStyle = style.outlineColor;
    pen.lineWidth = 2;
    pen.strokeRect(plot.x + at * step, plot.y, step, size);
    pen.strokeRect(plot.x, plot.y + at * step, size, step);
  };
  const under = (event) => {
    if (!shown?.mi || !shown.open.length || !plot) return;
    const at = (offset) => Math.floor((offset * shown.open.length) / plot.size);
    const [row, column] = [at(event.offsetY - plot.y), at(event.offsetX - plot.x)];
    if (row in shown.open && column in shown.open) hover(shown.open[row], shown.open[column]);
  };
  canvas.addEventListener("pointermove", under);
  canvas.addEventListener("pointerdown", under);
  new ResizeObserver(paint).observe(canvas);
  return (view) => {
    shown = view;
    const top = view.mi?.strongest[0];
    canvas.setAttribute("aria-label", `Mutual information of all pairs of ${view.open.length} open positions${top ? `; the strongest: ${names(top.i)} and ${names(top.j)}, ${top.nats} nats` : ""}`);
    paint();
  };
}
