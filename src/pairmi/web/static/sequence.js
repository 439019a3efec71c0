// What a strip of positions has besides its cells: arcs between distant pairs, and the whole matrix as a heat map.

import { colour, rgb } from "./colour.js";
import { $ } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";

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

/** The matrix between the open positions as an image of one pixel per pair. */
function pixels({ mi, most, open }) {
  const image = new ImageData(open.length, open.length);
  open.forEach((i, row) => open.forEach((j, column) => image.data.set([...rgb(mi.matrix[i][j] / (most || 1)), 255], 4 * (row * open.length + column))));
  const small = new OffscreenCanvas(open.length, open.length);
  small.getContext("2d").putImageData(image, 0, 0);
  return small;
}

/** A heat map of the open positions; `hover` is told the pair under the pointer. Returns what draws a view. */
export function createMap(canvas, hover) {
  let shown = null;
  let cached = null;
  const paint = () => {
    const size = (canvas.width = canvas.height = Math.round(canvas.clientWidth * devicePixelRatio));
    const pen = canvas.getContext("2d");
    if (!shown?.mi || !shown.open.length || !size) return;
    const key = document.documentElement.dataset.theme;
    if (cached?.matrix !== shown.mi.matrix || cached.key !== key) cached = { matrix: shown.mi.matrix, key, image: pixels(shown) };
    pen.imageSmoothingEnabled = false;
    pen.drawImage(cached.image, 0, 0, size, size);
    const [step, at] = [size / shown.open.length, shown.open.indexOf(shown.cell)];
    if (at < 0) return;
    pen.strokeStyle = getComputedStyle(canvas).color;
    pen.lineWidth = 2;
    pen.strokeRect(at * step, 0, step, size);
    pen.strokeRect(0, at * step, size, step);
  };
  canvas.addEventListener("pointermove", (event) => {
    if (!shown?.mi || !shown.open.length) return;
    const place = (offset) => shown.open[Math.min(shown.open.length - 1, Math.max(0, Math.floor((offset * shown.open.length) / canvas.clientWidth)))];
    hover(place(event.offsetY), place(event.offsetX));
  });
  new ResizeObserver(paint).observe(canvas);
  return (view) => {
    shown = view;
    paint();
  };
}
