// The panels: where the numbers come from, what is known of the chosen position, and what happened in a pass.

import { colour } from "./colour.js";
import { $, count, h, percent, refill } from "./dom.js";
import { mark, list } from "./help.js";
import { TERMS } from "./words.js";

export function source({ mi }, hasHead) {
  if (mi?.kind === "map") return ($("#source").textContent = `What one symbol tells of another in this complete sequence, in nats: ${count(mi.rows, "sequence")} with masked positions.`), ($("#note").hidden = true);
  const drawn = (found) => `Drawn: ${count(found.rows, "sequence")}${found.error === null ? "" : `; standard error at most ${found.error} nats`}.`;
  const exact = (found) => found.kind === "draws" ? drawn(found) : `Measured from ${count(found.rows, "sequence")}${found.bound ? `; every value within ${found.bound} nats` : ""}.`;
  $("#source").textContent = !mi ? (hasHead ? "" : "This model has no head: everything is measured.") : mi.kind === "head" ? "Estimated by the model's head, from one pass." : exact(mi);
  $("#note").hidden = !mi?.note;
  $("#note").textContent = mi?.note ?? "";
}

function candidateButtons(ranked, fill, imagine) {
  const shown = ranked.filter(([, p], n) => p >= 0.005 || n < 2).slice(0, 9);
  return h("div", { className: "chips" }, ...shown.map(([symbol, p]) => {
    const chip = h("button", { type: "button", title: `Fill with ${symbol}`, onclick: () => fill(symbol), onpointerenter: () => imagine(symbol), onfocus: () => imagine(symbol), onpointerleave: () => imagine(null), onblur: () => imagine(null) }, h("b", {}, symbol), ` ${percent(p)}`);
    chip.style.setProperty("--p", `${100 * p}%`);
    return chip;
  }));
}

function pairsOf(view) {
  if (!view.mi) return [];
  if (!view.focus) return view.mi.strongest;
  return view.mi.matrix[view.cell].map((value, j) => ({ i: view.cell, j, nats: value })).filter((pair) => pair.nats >= 0.0005).sort((a, b) => b.nats - a.nats).slice(0, 40);
}

function pairList(view, names, actions) {
  const pairs = pairsOf(view).map(({ i, j, nats }) => {
    const line = h("button", { type: "button", onclick: () => actions.pick(view.focus ? j : i) }, h("span", {}, view.focus ? names(j) : `${names(i)} – ${names(j)}`), h("i"), h("b", {}, nats.toFixed(3)));
    line.style.setProperty("--p", `${(100 * nats) / (view.most || 1)}%`);
    line.style.setProperty("--c", colour(nats / (view.most || 1)));
    return h("li", {}, line);
  });
  const none = view.mi ? "Nothing here depends on anything else." : view.open.length ? "Not measured yet." : "Nothing is open: every position is filled.";
  return pairs.length ? h("div", { className: "fill" }, h("ol", { className: "pairs" }, ...pairs)) : h("p", { className: "quiet" }, none);
}

/** What is shown while a symbol is only imagined. */
const imagining = ({ by, symbol }, name) => h("p", { className: "waits" }, by === "tables" ? `If ${name} were ${symbol}: how the model's tables move the others, before any pass.` : `If ${name} were ${symbol}: what one more pass says of the others.`);
let offering = null; // the candidates whose buttons stand there: pointing at one of them must not replace it

export function inspect(view, names, actions) {
  const { cell, preview } = view;
  if (preview && preview.cell === cell && offering) return $("#imagined").replaceChildren(imagining(preview, names(cell)));
  if (view.conflict) return refill($("#inspect"), h("h2", {}, "Nothing completes this canvas"), h("p", { className: "bad" }, `${view.conflict.message}.`), h("p", { className: "quiet" }, view.conflict.positions.length ? "Change or empty one of the marked positions, or undo." : "Undo, or set another canvas."));
  const ranked = cell === null ? null : view.candidates?.[cell];
  offering = ranked;
  const title = cell === null ? "Strongest pairs" : ranked ? `${names(cell)}: uncertainty ${view.entropies[cell].toFixed(2)} nats` : `${names(cell)}: ${view.text[cell] ?? ""}`;
  const waits = cell !== null && view.reasons[cell];
  return refill(
    $("#inspect"),
    h("h2", {}, title),
    waits ? h("p", { className: "waits" }, `Waits: ${waits.why}.`) : null,
    ranked ? candidateButtons(ranked, (symbol) => actions.fill(cell, symbol), (symbol) => actions.imagine(cell, symbol)) : null,
    ranked ? h("div", { id: "imagined", role: "status" }, h("p", { className: "quiet" }, "Point at a symbol to see the others move.")) : null,
    cell === null ? null : h("h3", {}, ranked ? "Shares with (nats)" : "Strongest pairs (nats)"),
    pairList(view, names, actions),
  );
}

export function explain(run, position, names, actions) {
  const place = $("#passes");
  $("#decode").classList.toggle("running", Boolean(run));
  if (!run) return place.replaceChildren();
  const { result } = run;
  const cost = result && `${count(result.passes, "pass", "passes")}, ${count(result.rows, "sequence")} evaluated, ${result.seconds.toFixed(2)} s`;
  const told = !result ? `Decoding, pass ${run.steps.length}…` : result.broken ? `Broke in pass ${result.broken.pass}: ${result.broken.message}. ${cost}.` : `${result.verdict[0].toUpperCase()}${result.verdict.slice(1)}. ${cost}.`;
  const summary = h("p", { className: !result ? "quiet" : result.broken ? "bad" : "good" }, told);
  if (!position) return refill(place, summary);
  const step = run.steps[position - 1];
  const filled = Object.entries(step.filled).map(([i, symbol]) => `${names(Number(i))}=${symbol}`);
  const waiting = Object.entries(step.waiting);
  const keep = h("button", { type: "button", onclick: actions.keep, title: "Make what is shown the canvas" }, "Keep");
  const reason = ([i, { why }]) => h("li", {}, h("button", { type: "button", title: why, onclick: () => actions.pick(Number(i)) }, h("b", {}, names(Number(i))), " ", h("span", {}, why)));
  return refill(
    place,
    summary,
    h("p", { className: "filled", title: filled.join(", ") }, keep, " ", h("b", {}, `Pass ${position} filled ${filled.length}${filled.length > 1 ? " at once" : ""}: `), filled.join(", ")),
    waiting.length ? h("h3", {}, `${waiting.length} waited `, mark("why positions wait", () => list([TERMS.shared, ["budget", "what a pass may risk, in nats; a position that would exceed it waits for the next pass."]]))) : null,
    h("div", { className: "fill" }, h("ul", { className: "reasons" }, ...waiting.map(reason))),
  );
}
