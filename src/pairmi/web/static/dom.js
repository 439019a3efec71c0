// Elements from plain values.

export const $ = (selector) => document.querySelector(selector);

export function h(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(made.dataset, value);
    else if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Replaces what is in `place`; the control that had the focus, by its number, has it afterwards. */
export function refill(place, ...children) {
  const controls = () => [...place.querySelectorAll("input, select, button, summary")];
  const at = controls().indexOf(document.activeElement);
  place.replaceChildren(...children.filter((child) => child !== null));
  if (at >= 0) controls()[at]?.focus();
}

export function say(text, isError = false) {
  const line = $("#message");
  line.textContent = text;
  line.classList.toggle("error", isError);
}

/** A line that stays until it is dismissed. */
export function notify(text) {
  const [words, dismiss] = $("#notice").children;
  $("#notice").hidden = !text;
  words.textContent = text;
  dismiss.onclick = () => ($("#notice").hidden = true);
}

export const nats = (value) => (value < 0.0005 ? "0" : value < 0.995 ? value.toFixed(2).slice(1) : value.toFixed(2));
/** Digits enough to tell a range apart. */
export const range = (value) => value.toFixed(value > 0 && value < 0.1 ? 3 : 2);
export const percent = (p) => `${p < 0.095 ? (100 * p).toFixed(1) : Math.round(100 * p)} %`;
export const count = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;
