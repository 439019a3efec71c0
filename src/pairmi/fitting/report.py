"""What a fit has found, for people: a page with pictures in it, and a model card."""

import base64
import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, cast

from pairmi import api
from pairmi.backbones.identity import identify
from pairmi.bench import fidelity, report
from pairmi.bench.head import draw_calibration, predicted_by, scores
from pairmi.bench.price_plots import draw_frontier, draw_reliability
from pairmi.fitting.job import Fit
from pairmi.fitting.learning import parted
from pairmi.provenance import provenance
from pairmi.store import read_store
from pairmi.types import PairwiseMI

FAITHFUL = """<p>On {states} states of sequences that it was not trained on ({pairs} pairs) it explains {r2:.2f} of the variance of probed \
mutual information (rank correlation {spearman:.2f}, mean error {mae:.3g} nats).</p>"""
CARD = """A head that estimates pairwise mutual information from one pass: trained on {labelled} states whose mutual information was \
probed; on unseen sequences R2 {r2:.2f}, rank correlation {spearman:.2f}."""


def head_fidelity(fit: Fit, count: int, file: Path) -> dict[str, Any]:
    """How well the head agrees with probes of sequences that it was not trained on, and the picture of it."""
    labels, _ = read_store(fit.work / "labels", count)
    unseen, mask = labels.split("test"), fit.model.vocab.size
    known, others = parted(labels, mask) or (labels, labels)
    if not len(unseen) or not unseen.has_pair(mask) or len(known) + len(others) == len(labels):  # parted by number: all were used
        unseen = others
    within = unseen.known(fit.model.vocab.size)
    values = predicted_by(cast(PairwiseMI, fit.model.head), fit.model, unseen)
    draw_calibration({"head": fidelity.calibration(values[within], unseen.mi[within])}, file)
    return scores(values, unseen.mi, within, None)


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
    rows = [record | {"95 %": f"[{record['interval'][0]:.3g}, {record['interval'][1]:.3g}]"} for record in prices]
    reliability = "<p>Not calibrated: too little is lost on these canvases to learn a charge from.</p>"
    if checks:
        draw_reliability({"calibrated mi-bound": checks}, pictures / "reliability.png")
        reliability = _image(pictures / "reliability.png", "measured over asked nats a pass")
        reliability += _table(checks, ("budget", "measured", "error"))
    card = "No head: the model reports no hidden states. Rules probe."
    page = "<p>This model reports no hidden states, so there is no head: rules probe, which costs rows at every pass.</p>"
    if count:
        found = head_fidelity(fit, count, pictures / "fidelity.png")
        page = FAITHFUL.format(**found) + _image(pictures / "fidelity.png", "predicted against probed mutual information")
        card = CARD.format(labelled=count, **found)
    about = {
        "name": fit.model.name,
        "words": rule["words"],
        "data": fit.data.described,
        "minutes": f"{fit.clock.spent / 60:.1f}",
        "out": repr(str(out)),
        "provenance": json.dumps(provenance()),
    }
    calibration = "inside; a budget of mi-bound:charge=calibrated is nats lost a pass" if fit.model.calibration else "none"
    shown = {
        "frontier": _image(pictures / "frontier.png", "nats over passes for every rule"),
        "prices": _table(rows, ("rule", "passes", "nats", "95 %", "acceptance")),
        "maps": "".join(_image(file, "a map of mutual information") for file in draw_maps(fit, pictures)),
    }
    _fill("card.md", out / "README.md", about, head=card, weights=identify(fit.model), calibration=calibration)
    escaped = {name: html.escape(value) for name, value in about.items()}
    _fill("report.html", out / "report.html", escaped, **shown, head=page, reliability=reliability)


def _fill(template: str, file: Path, about: Mapping[str, str], **parts: str) -> None:
    file.write_text(Template((files("pairmi.fitting") / template).read_text()).substitute(about, **parts))


def _image(file: Path, alt: str) -> str:
    data = base64.b64encode(file.read_bytes()).decode()
    return f"<figure><img alt='{html.escape(alt)}' src='data:image/png;base64,{data}'></figure>"


def _table(records: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    cells = [[html.escape(cell.strip()) for cell in line.split("|")[1:-1]] for line in report.table(records, columns).splitlines()]
    lines = ["".join(f"<th>{cell}</th>" for cell in cells[0]), *("".join(f"<td>{cell}</td>" for cell in row) for row in cells[2:])]
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
