// One scale for mutual information: cividis, from the page's own background, so that nothing looks like nothing.

const DARK = ["#1b2027", "#35456c", "#666970", "#948e77", "#c8b866", "#fee838"];
const LIGHT = ["#ffffff", "#f1e5a1", "#c8b866", "#948e77", "#666970", "#35456c", "#00224e"];
const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

export const isDark = () => document.documentElement.dataset.theme === "dark";

/** The colour of a share of the largest value, as three numbers. */
export function rgb(share) {
  const anchors = isDark() ? DARK : LIGHT;
  const place = Math.min(Math.max(share, 0), 1) * (anchors.length - 1);
  const low = Math.min(Math.floor(place), anchors.length - 2);
  const [from, to] = [channels(anchors[low]), channels(anchors[low + 1])];
  return from.map((value, n) => Math.round(value + (to[n] - value) * (place - low)));
}
export const colour = (share) => `rgb(${rgb(share).join(" ")})`;

/** Black or white, whichever is easier to read on it. */
export function ink(share) {
  const [r, g, b] = rgb(share).map((value) => (value / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#10151c" : "#f4f6f8";
}

export function largest(matrix) {
  let most = 0;
  for (const row of matrix ?? []) for (const value of row) if (value > most) most = value;
  return most;
}

export function drawLegend(element, most) {
  const [low, bar, high] = element.children;
  low.textContent = "0";
  high.textContent = most ? `${most.toFixed(2)} nats` : "nats";
  bar.style.background = `linear-gradient(to right, ${[0, 0.2, 0.4, 0.6, 0.8, 1].map(colour).join(", ")})`;
  element.setAttribute("aria-label", `Colours from 0 to ${most.toFixed(2)} nats`);
}

export function theme(name) {
  const wanted = name ?? localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = wanted;
  if (name) localStorage.setItem("theme", name);
}
