// What is shown, as a file: a vector drawing, the same as an image, or the numbers.

import { colour, ink } from "./colour.js";
import { h, range } from "./dom.js";
import { isOpen, names } from "./models.js";
import { axisLabel } from "./sequence.js";

const escape = (text) => String(text).replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
const text = (x, y, size, words, fill, anchor = "middle", more = "") => `<text x="${x}" y="${y}" font-size="${size}" text-anchor="${anchor}" fill="${fill}"${more}>${escape(words)}</text>`;

function frame(width, height, title, most, body, page) {
  const stops = [0, 0.2, 0.4, 0.6, 0.8, 1].map((at) => `<stop offset="${at}" stop-color="${colour(at)}"/>`).join("");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height + 60}" width="${width}" height="${height + 60}" font-family="system-ui, sans-serif">
<defs><linearGradient id="g">${stops}</linearGradient></defs><rect width="100%" height="100%" fill="${page.paper}"/>
${text(10, 22, 14, title, page.ink, "start")}<g transform="translate(10 34)">${body}</g>
<rect x="10" y="${height + 40}" width="160" height="10" fill="url(#g)" stroke="${page.line}"/>${text(178, height + 50, 11, `0 to ${range(most)} nats`, page.ink, "start")}</svg>`;
}

function boardBody(view, model, page) {
  const size = 540 / model.side;
  const focus = view.focus ? view.mi.matrix[view.cell] : null;
  let body = "";
  for (let i = 0; i < view.text.length; i += 1) {
    const [x, y] = [(i % model.side) * size, Math.floor(i / model.side) * size];
    const share = focus ? focus[i] / (view.most || 1) : 0;
    const mark = i === view.cell ? page.accent : page.line;
    body += `<rect x="${x}" y="${y}" width="${size}" height="${size}" fill="${colour(share)}" stroke="${mark}" stroke-width="${i === view.cell ? 3 : 0.5}"/>`;
    if (!isOpen(view.text[i])) body += text(x + size / 2, y + size * 0.66, size * 0.45, view.text[i], ink(share));
    else if (focus?.[i] >= 0.005) body += text(x + size / 2, y + size * 0.6, size * 0.25, focus[i].toFixed(2), ink(share));
  }
  const order = Math.sqrt(model.side);
  for (let n = 0; n <= order; n += 1) body += `<path d="M${n * order * size} 0V540M0 ${n * order * size}H540" stroke="${page.ink}" stroke-width="1.5"/>`;
  return body;
}

function matrixBody(view, page) {
  const size = 490 / view.open.length;
  const every = Math.ceil(11 / size);
  const labels = view.open.map((i, n) => {
    const [at, label] = [50 + (n + 0.5) * size, axisLabel(view, i)];
    return n % every ? "" : text(46, at + 3, 9, label, page.ink, "end") + text(at + 3, 46, 9, label, page.ink, "start", ` transform="rotate(-90 ${at + 3} 46)"`);
  });
  const squares = view.open.flatMap((i, row) => view.open.map((j, column) => {
    const share = view.mi.matrix[i][j] / (view.most || 1);
    const place = `x="${(50 + column * size).toFixed(2)}" y="${(50 + row * size).toFixed(2)}" width="${size.toFixed(2)}" height="${size.toFixed(2)}"`;
    return share > 0.002 ? `<rect ${place} fill="${colour(share)}"><title>${names(i)} – ${names(j)}: ${view.mi.matrix[i][j]} nats</title></rect>` : "";
  }));
  return `<rect x="50" y="50" width="490" height="490" fill="${colour(0)}" stroke="${page.line}"/>${squares.join("")}${labels.join("")}`;
}

function drawing(view, model, onBoard) {
  const style = getComputedStyle(document.documentElement);
  const page = Object.fromEntries(["paper", "ink", "line", "accent"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  const about = onBoard && view.cell !== null ? ` with ${names(view.cell)}` : "";
  return frame(560, 550, `${model.name}: mutual information${about} (${view.mi.kind === "head" ? "head" : "exact"})`, view.most, onBoard ? boardBody(view, model, page) : matrixBody(view, page), page);
}

async function rasterised(svg) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = h("canvas", { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((done) => canvas.toBlob(done));
}

export async function save(kind, view, model, onBoard) {
  if (!view.mi) throw new Error("there is no map yet; wait for it, or measure it");
  const record = { model: model.name, canvas: view.before, mi: view.mi.kind, bound: view.mi.bound, unit: "nats", places: view.text.map((_, i) => names(i)), entropies: view.entropies, matrix: view.mi.matrix };
  const svg = kind === "json" ? "" : drawing(view, model, onBoard);
  const blob = kind === "json" ? new Blob([JSON.stringify(record)], { type: "application/json" }) : kind === "svg" ? new Blob([svg], { type: "image/svg+xml" }) : await rasterised(svg);
  const link = h("a", { href: URL.createObjectURL(blob), download: `pairmi-${model.name.replace(/\W+/g, "-")}.${kind}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
