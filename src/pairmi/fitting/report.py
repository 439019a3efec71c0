"""What a fit has found, for people: a page with pictures in it, and a model card."""

import base64
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pairmi import api
from pairmi.backbones.identity import identify
from pairmi.bench import fidelity, report
from pairmi.bench.head import draw_calibration, predicted_by
from pairmi.bench.price_plots import draw_frontier, draw_reliability
from pairmi.fitting.stages import SHARD, Fit
from pairmi.provenance import provenance
from pairmi.store import read_store
from pairmi.types import PairwiseMI

STYLE = """body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
img { max-width: 100%; height: auto } table { border-collapse: collapse; font-size: 14px }
td, th { padding: 2px 10px; text-align: left; border-bottom: 1px solid #ddd } code { background: #f3f3f3; padding: 0 3px }
figure { margin: 1rem 0 } .maps { display: flex; flex-wrap: wrap }
.maps figure { flex: 1 1 22rem; margin: 0 }"""


def head_fidelity(fit: Fit, count: int, file: Path) -> dict[str, float]:
    """How well the head agrees with probes of sequences that it was not trained on, and the picture of it."""
    labels, _ = read_store(fit.work / "labels", SHARD * count)
    unseen = labels.split("test") if len(labels.split("test")) else labels.split("validation")
    within = unseen.known(fit.model.vocab.size)
    values = predicted_by(cast(PairwiseMI, fit.model.head), fit.model, unseen)
    draw_calibration({"head": fidelity.calibration(values[within], unseen.mi[within])}, file)
    found = {"states": float(len(unseen)), "pairs": float(within.sum()), "r2": fidelity.r2(values[within], unseen.mi[within])}
    return found | {
        "spearman": fidelity.spearman(values[within], unseen.mi[within]),
        "mae": fidelity.mae(values[within], unseen.mi[within]),
    }


def draw_maps(fit: Fit, folder: Path) -> list[Path]:
    """What depends on what in some canvases, by the head or by probes."""
    files = []
    for number, canvas in enumerate(fit.data.shown):
        model = fit.model
        found = api.estimated(model, canvas[None])[0] if model.head is not None else api.mutual_information(model, [canvas])[0]
        files.append(folder / f"map{number + 1}.png")
        report.save(found.plot(f"what depends on what, example {number + 1}"), files[-1])
    return files


def write_report(fit: Fit, out: Path, count: int, rule: Mapping[str, Any], checks: Sequence[Mapping[str, Any]]) -> None:
    """`report.html`, with all pictures inside, and `README.md`, the model card."""
    prices = [record for record in fit.ledger.found.values() if record["settings"]["what"] == "price"]
    prices.sort(key=lambda record: float(record["passes"]))
    pictures = fit.work / "pictures"
    draw_frontier(prices, pictures / "frontier.png", "what each rule loses, and how many passes it takes")
    faithful = head_fidelity(fit, count, pictures / "fidelity.png") if count else None
    if checks:
        draw_reliability({"calibrated mi-bound": checks}, pictures / "reliability.png")
    maps = draw_maps(fit, pictures)
    write_card(fit, out, rule, faithful, count)
    rows = [record | {"95 %": f"[{record['interval'][0]:.3g}, {record['interval'][1]:.3g}]"} for record in prices]
    parts = [
        f"<h1>{html.escape(fit.model.name)}: decoding in parallel</h1>",
        f"<p><strong>{html.escape(rule['words'])}</strong></p>",
        f"<p>Made by <code>pairmi fit</code> from {html.escape(fit.data.described)} in {fit.clock.spent / 60:.1f} minutes. "
        f"Load it: <code>model = pairmi.load(BACKBONE, head={html.escape(repr(str(out)))})</code>; "
        "<code>pairmi.decode(model, canvas)</code> then uses this rule.</p>",
        "<h2>What each rule loses</h2><p>Nats lost a sequence against one-by-one decoding in the rule's own order, over passes.</p>",
        _image(pictures / "frontier.png", "nats over passes for every rule"),
        _table(rows, ("rule", "passes", "nats", "95 %", "acceptance")),
        "<h2>Is a budget what a pass loses?</h2>",
        _image(pictures / "reliability.png", "measured over asked nats a pass") + _table(checks, ("budget", "measured", "error"))
        if checks
        else "<p>Not calibrated: too little is lost on these canvases to learn a charge from.</p>",
        "<h2>The head</h2>",
        _faithful(faithful) + _image(pictures / "fidelity.png", "predicted against probed mutual information")
        if faithful
        else "<p>This model reports no hidden states, so there is no head: rules probe, which costs rows at every pass.</p>",
        "<h2>What depends on what</h2>",
        f"<div class='maps'>{''.join(_image(file, 'a map of mutual information') for file in maps)}</div>",
        f"<p>{html.escape(json.dumps(provenance()))}</p>",
    ]
    page = f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{html.escape(fit.model.name)}</title><style>{STYLE}</style>"
    (out / "report.html").write_text(page + "\n".join(parts) + "</html>\n")


def _faithful(found: Mapping[str, float]) -> str:
    return (
        f"<p>On {found['states']:.0f} states of sequences that it was not trained on ({found['pairs']:.0f} pairs) it explains "
        f"{found['r2']:.2f} of the variance of probed mutual information (rank correlation {found['spearman']:.2f}, "
        f"mean error {found['mae']:.3g} nats).</p>"
    )


def _image(file: Path, alt: str) -> str:
    data = base64.b64encode(file.read_bytes()).decode()
    return f"<figure><img alt='{html.escape(alt)}' src='data:image/png;base64,{data}'></figure>"


def _table(records: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    cells = [[html.escape(cell.strip()) for cell in line.split("|")[1:-1]] for line in report.table(records, columns).splitlines()]
    lines = ["".join(f"<th>{cell}</th>" for cell in cells[0]), *("".join(f"<td>{cell}</td>" for cell in row) for row in cells[2:])]
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def write_card(fit: Fit, out: Path, rule: Mapping[str, Any], faithful: Mapping[str, float] | None, count: int) -> None:
    """The model card."""
    head = (
        f"A head that estimates pairwise mutual information from one pass: trained on {SHARD * count} states whose mutual information was "
        f"probed; on unseen sequences R2 {faithful['r2']:.2f}, rank correlation {faithful['spearman']:.2f}."
        if faithful
        else "No head: the model reports no hidden states. Rules probe."
    )
    (out / "README.md").write_text(
        f"# A head for {fit.model.name}\n\n{head}\n\n"
        f"* **Backbone**: {fit.model.name}, weights {identify(fit.model)}; the head refuses any other.\n"
        f"* **Data**: {fit.data.described}.\n"
        f"* **Rule**: {rule['words']}\n"
        f"* **Calibration**: {'inside; a budget of mi-bound:charge=calibrated is nats lost a pass' if fit.model.calibration else 'none'}.\n"
        f"* **Made by**: `pairmi fit`, {fit.clock.spent / 60:.1f} minutes; {json.dumps(provenance())}.\n"
        f"* **Use**: `model = pairmi.load(BACKBONE, head={str(out)!r}); pairmi.decode(model, canvas)`. "
        f"The rule was tuned on canvases like the data; on others its price may differ: `pairmi price`.\n"
    )
