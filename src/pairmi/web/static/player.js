// Play, pause, back, forward, a slider: over any number of passes.

import { h } from "./dom.js";

/** `move` is told where to go; while `more` says so, playing waits at the end for passes that are still to come. */
export function createPlayer(place, move, { pace = 700, more = () => false } = {}) {
  let timer = null;
  let position = 0;
  let length = 0;
  const go = (to) => move(Math.min(Math.max(to, 0), length));
  const step = (by) => (stop(), go(position + by));
  const button = (text, title, onclick) => h("button", { type: "button", title, "aria-label": title, onclick }, text);
  const play = button("▶", "Play or pause", () => (timer ? stop() : start()));
  const slider = h("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Pass", oninput: () => (stop(), go(Number(slider.value))) });
  const label = h("output");
  place.classList.add("player");
  place.replaceChildren(button("«", "To the start", () => step(-length)), button("◀", "One pass back", () => step(-1)), play, button("▷", "One pass on", () => step(1)), button("»", "To the end", () => step(length)), slider, label);

  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "▶";
  }
  function start() {
    stop();
    if (position >= length) go(0);
    play.textContent = "❚❚";
    timer = setInterval(() => (position < length ? go(position + 1) : more() || stop()), pace);
  }
  return {
    start,
    stop,
    show(at, of) {
      [position, length] = [at, of];
      place.hidden = of === 0;
      slider.max = of;
      slider.value = at;
      slider.setAttribute("aria-valuetext", `pass ${at} of ${of}`);
      label.textContent = `pass ${at} of ${of}`;
    },
  };
}
