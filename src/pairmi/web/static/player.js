// Play, pause, back, forward, a slider: over any number of passes.

import { h } from "./dom.js";

export function createPlayer(place, move) {
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
  place.replaceChildren(button("«", "To the start", () => step(-length)), button("◀", "One pass back", () => step(-1)), play, button("▷", "One pass on", () => step(1)), slider, label);

  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "▶";
  }
  function start() {
    if (position >= length) go(0);
    play.textContent = "❚❚";
    timer = setInterval(() => (position < length ? go(position + 1) : stop()), 700);
  }
  return {
    start,
    stop,
    show(at, of) {
      [position, length] = [at, of];
      place.hidden = of === 0;
      slider.max = of;
      slider.value = at;
      label.textContent = `pass ${at} of ${of}`;
    },
  };
}
