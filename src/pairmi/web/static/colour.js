// Two scales, each from the page's own background, so that nothing looks like nothing: blue for uncertainty, orange for what is shared.

import { range } from "./dom.js";

const SCALES = {
  light: { mi: ["#ffffff", "#fdeec4", "#f9cf85", "#ee9a4d", "#cf5b3c", "#8f2a46", "#4a1140"], entropy: ["#ffffff", "#e3edf8", "#bfd6ef", "#96bbe2"] },
  dark: { mi: ["#1b2027", "#4a2447", "#8a2f4c", "#c9553c", "#ee9a4d", "#fbe3a4"], entropy: ["#1b2027", "#22364f", "#2b4f7a", "#3a6aa3"] },
};
const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const linear = (value) => (value <= 10 ? value / 3294 : ((value / 255 + 0.055) / 1.055) ** 2.4);

export const isDark = () => document.documentElement.dataset.theme === "dark";

/** The colour of a share of the largest value, as three numbers. */
export function rgb(share, scale = "mi") {
  const anchors = SCALES[isDark() ? "dark" : "light"][scale];
  const place = Math.min(Math.max(share, 0), 1) * (anchors.length - 1);
  const low = Math.min(Math.floor(place), anchors.length - 2);
  const [from, to] = [channels(anchors[low]), channels(anchors[low + 1])];
  return from.map((value, n) => Math.round(value + (to[n] - value) * (place - low)));
}
export const colour = (share, scale) => `rgb(${rgb(share, scale).join(" ")})`;

/** Black or white, whichever has more contrast on it: never less than 4.58 to 1. */
export function ink(share, scale) {
  const [r, g, b] = rgb(share, scale).map(linear);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

export function largest(matrix) {
  let most = 0;
  for (const row of matrix ?? []) for (const value of row) if (value > most) most = value;
  return most;
}

const STOPS = [0, 0.2, 0.4, 0.6, 0.8, 1];
export function drawLegend(button, words, most, scale, active) {
  const [title, bar, limits] = button.children;
  title.textContent = words;
  bar.style.background = `linear-gradient(to right, ${STOPS.map((stop) => colour(stop, scale)).join(", ")})`;
  limits.textContent = most ? `0 – ${range(most)} nats` : "nats";
  button.setAttribute("aria-pressed", active);
}

export function theme(name) {
  const wanted = name ?? localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = wanted;
  document.querySelector("#theme").textContent = wanted === "dark" ? "Light" : "Dark";
  if (name) localStorage.setItem("theme", name);
}
