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

/** The matrix as an image of one pixel per pair. */
export function pixels(matrix, most) {
  const length = matrix.length;
  const image = new ImageData(length, length);
  for (let i = 0; i < length; i += 1)
    for (let j = 0; j < length; j += 1) image.data.set([...rgb(matrix[i][j] / (most || 1)), 255], 4 * (i * length + j));
  const small = new OffscreenCanvas(length, length);
  small.getContext("2d").putImageData(image, 0, 0);
  return small;
}

export function createMap(canvas, hover) {
  let shown = null;
  let cached = null;
  const paint = () => {
    const size = Math.round(canvas.clientWidth * devicePixelRatio);
    canvas.width = canvas.height = size;
    const pen = canvas.getContext("2d");
    pen.imageSmoothingEnabled = false;
    if (!shown?.mi || !size) return;
    const key = document.documentElement.dataset.theme;
    if (cached?.matrix !== shown.mi.matrix || cached.key !== key) cached = { matrix: shown.mi.matrix, key, image: pixels(shown.mi.matrix, shown.most) };
    pen.drawImage(cached.image, 0, 0, size, size);
    if (shown.cell === null) return;
    const step = size / shown.mi.matrix.length;
    pen.strokeStyle = getComputedStyle(canvas).getPropertyValue("color");
    pen.strokeRect(shown.cell * step, 0, step, size);
    pen.strokeRect(0, shown.cell * step, size, step);
  };
  canvas.addEventListener("pointermove", (event) => {
    if (!shown?.mi) return;
    const step = canvas.clientWidth / shown.mi.matrix.length;
    const last = shown.mi.matrix.length - 1;
    hover(Math.min(last, Math.floor(event.offsetY / step)), Math.min(last, Math.floor(event.offsetX / step)));
  });
  new ResizeObserver(paint).observe(canvas);
  return (view) => {
    shown = view;
    paint();
  };
}
