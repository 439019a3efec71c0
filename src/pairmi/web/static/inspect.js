// The panel: what is known of the chosen position, the strongest pairs, and what happened in a pass.

import { colour } from "./colour.js";
import { $, h } from "./dom.js";

const percent = (p) => `${p < 0.095 ? (100 * p).toFixed(1) : Math.round(100 * p)} %`;

function candidateButtons(probs, symbols, fill) {
  const ranked = probs.map((p, n) => [p, symbols[n]]).sort((a, b) => b[0] - a[0]).filter(([p], n) => p >= 0.005 || n < 2).slice(0, 9);
  return h("div", { className: "chips" }, ...ranked.map(([p, symbol]) => {
    const chip = h("button", { type: "button", title: `Fill with ${symbol}`, onclick: () => fill(symbol) }, h("b", {}, symbol), ` ${percent(p)}`);
    chip.style.setProperty("--p", `${100 * p}%`);
    return chip;
  }));
}

function pairsOf(view) {
  if (!view.mi) return [];
  if (view.cell === null || !view.probs?.[view.cell]) return view.mi.strongest;
  return view.mi.matrix[view.cell].map((value, j) => ({ i: view.cell, j, nats: value })).filter((pair) => pair.nats >= 0.0005).sort((a, b) => b.nats - a.nats).slice(0, 20);
}

export function inspect(view, model, names, actions) {
  const { cell } = view;
  const probs = cell === null ? null : view.probs?.[cell];
  const all = !probs; // a position that is known depends on nothing: show the pairs of the whole canvas
  const title = cell === null ? "Strongest pairs" : probs ? `${names(cell)}: entropy ${view.entropies[cell].toFixed(2)} nats` : `${names(cell)}: ${view.text[cell] ?? ""}`;
  const waits = cell !== null && view.reasons[cell];
  const pairs = pairsOf(view).map(({ i, j, nats }) => {
    const line = h("button", { type: "button", onclick: () => actions.pick(all ? i : j) }, h("span", {}, all ? `${names(i)} – ${names(j)}` : names(j)), h("i"), h("b", {}, nats.toFixed(3)));
    line.style.setProperty("--p", `${(100 * nats) / (view.most || 1)}%`);
    line.style.setProperty("--c", colour(nats / (view.most || 1)));
    return h("li", {}, line);
  });
  const none = view.mi ? "Nothing depends on anything here." : "Not measured yet.";
  $("#inspect").replaceChildren(
    h("h2", {}, title),
    ...[
      waits ? h("p", { className: "waits" }, `Waits: ${waits.why}.`) : null,
      probs ? candidateButtons(probs, model.symbols, (symbol) => actions.fill(cell, symbol)) : null,
      cell === null ? null : h("h3", {}, all ? "Strongest pairs" : "Depends on"),
      pairs.length ? h("ol", { className: "pairs" }, ...pairs) : h("p", { className: "quiet" }, none),
    ].filter(Boolean),
  );
}

export function explain(run, position, names, actions) {
  const place = $("#passes");
  if (!run) return place.replaceChildren();
  const { result } = run;
  const cost = result && `${result.passes} passes, ${result.rows} sequences evaluated, ${result.seconds.toFixed(2)} s`;
  const keep = h("button", { type: "button", onclick: actions.keep, title: "Make what is shown the canvas" }, "Keep");
  const summary = !result ? h("p", { className: "quiet" }, "Decoding…") : h("p", { className: result.broken ? "bad" : "good" }, `${result.broken ? `Broke in pass ${result.broken.pass}: ${result.broken.message}` : result.verdict[0].toUpperCase() + result.verdict.slice(1)}. ${cost}.`);
  if (!position) return place.replaceChildren(summary);
  const step = run.steps[position - 1];
  const filled = Object.entries(step.filled);
  const waiting = Object.entries(step.waiting);
  place.replaceChildren(...[
    summary,
    h("p", {}, keep, " ", h("b", {}, `Pass ${position} filled ${filled.length} at once: `), filled.map(([i, symbol]) => `${names(Number(i))}=${symbol}`).join(", ")),
    waiting.length ? h("p", {}, h("b", {}, `${waiting.length} waited:`)) : null,
    h("ul", { className: "reasons" }, ...waiting.map(([i, { why }]) => h("li", {}, h("button", { type: "button", onclick: () => actions.pick(Number(i)) }, h("b", {}, names(Number(i))), ` ${why}`)))),
  ].filter(Boolean));
}
