// Explanations: popovers at the question marks, the help dialog, and the tour of the first visit.

import { $, h } from "./dom.js";
import { TERMS, TOUR } from "./words.js";

const TOURED = "pairmi.toured";
const described = (pairs) => pairs.flatMap(([term, text]) => [h("dt", {}, term), h("dd", {}, text)]);

/** A question mark that opens an explanation; `content` makes its elements. */
export function mark(label, content) {
  const button = h("button", { type: "button", className: "help", popovertarget: "tip", "aria-label": `Help: ${label}` }, "?");
  button.content = content;
  return button;
}
export const list = (pairs) => h("dl", {}, ...described(pairs));

function place(tip, anchor) {
  const box = anchor.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(box.left - 20, innerWidth - tip.offsetWidth - 8))}px`;
  const below = box.bottom + 6 + tip.offsetHeight < innerHeight;
  tip.style.top = `${below ? box.bottom + 6 : Math.max(8, box.top - tip.offsetHeight - 6)}px`;
}

/** Next to what is large, below or above what is small. */
function beside(box, target) {
  const { left, right, top, height } = target.getBoundingClientRect();
  if (height < innerHeight / 2) return place(box, target);
  box.style.left = `${Math.max(8, right + 14 + box.offsetWidth < innerWidth ? right + 14 : left + 14)}px`;
  return (box.style.top = `${top + 14}px`);
}

let at = 0;
let steps = [];
function showStep() {
  document.querySelector(".toured")?.classList.remove("toured");
  if (at >= steps.length) return endTour();
  const [target, title, text] = steps[at];
  target.classList.add("toured");
  target.scrollIntoView({ block: "nearest" });
  $("#tour-title").textContent = title;
  $("#tour-text").textContent = text;
  $("#tour .quiet").textContent = `${at + 1} of ${steps.length}`;
  $("#tour-next").textContent = at + 1 < steps.length ? "Next" : "Done";
  if (!$("#tour").open) $("#tour").show();
  if (innerWidth > 860) beside($("#tour"), target);
  return $("#tour-next").focus({ preventScroll: true });
}
function endTour() {
  document.querySelector(".toured")?.classList.remove("toured");
  localStorage.setItem(TOURED, "yes");
  $("#tour").close();
}
export function tour() {
  const visible = (selector) => [...document.querySelectorAll(selector)].find((one) => one.offsetParent);
  at = 0;
  steps = TOUR.map(([selector, ...words]) => [visible(selector), ...words]).filter(([target]) => target);
  if (steps.length) showStep();
}
/** Only for people who have not been here, and never where the address says ?tour=off. */
export function tourOnce() {
  if (!localStorage.getItem(TOURED) && new URLSearchParams(location.search).get("tour") !== "off") tour();
}

export function listenForHelp() {
  const tip = $("#tip");
  let anchor = null;
  const fill = (button) => {
    if (!button) return;
    anchor = button;
    tip.replaceChildren(button.content ? button.content() : list(button.dataset.terms.split(" ").map((term) => TERMS[term])));
  };
  document.addEventListener("click", (event) => fill(event.target.closest(".help")), true);
  tip.addEventListener("toggle", (event) => {
    const open = event.newState === "open";
    if (open) place(tip, anchor), anchor.setAttribute("aria-describedby", "tip");
    else anchor?.removeAttribute("aria-describedby");
  });
  const early = tip.matches(":popover-open") && document.activeElement.closest(".help"); // pressed before this script ran
  if (early) fill(early), place(tip, early);
  $("#glossary").append(...described(Object.values(TERMS)));
  $("#open-help").addEventListener("click", () => $("#help").showModal());
  $("#close-help").addEventListener("click", () => $("#help").close());
  $("#retour").addEventListener("click", () => ($("#help").close(), tour()));
  $("#tour-next").addEventListener("click", () => ((at += 1), showStep()));
  $("#tour-end").addEventListener("click", endTour);
  $("#tour").addEventListener("keydown", (event) => event.key === "Escape" && (event.stopPropagation(), endTour()));
  const more = $("#more");
  const menu = (open) => (more.setAttribute("aria-expanded", open), $("#tools").classList.toggle("open", open));
  more.addEventListener("click", () => menu(more.getAttribute("aria-expanded") === "false"));
  document.addEventListener("keydown", (event) => event.key === "Escape" && more.getAttribute("aria-expanded") === "true" && (menu(false), more.focus()));
  document.addEventListener("pointerdown", (event) => !event.target.closest("#tools, #more") && menu(false));
}
