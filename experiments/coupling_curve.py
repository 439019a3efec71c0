"""How much of what filling at once loses learnt tables explain, over the number of walks that they were trained on, at equal steps.

    python experiments/coupling_curve.py [--units 25] [--steps 400] [--shares 8 4 2 1]

Sequences of the walks of `pairmi train tables` (in --labels) are left out, never kinds of walks; all runs are judged on the same held-out
sequences. A finished run is in --records; `python experiments/coupling.py --page` writes the curve into docs/coupling.md.
"""

import argparse
from collections.abc import Mapping
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from pairmi.bench.ledger import Ledger
from pairmi.loading import load
from pairmi.training.loop import learning_rate
from pairmi.training.optimizer import MuonAdamW
from pairmi.training.table_labels import HELD_OUT, make_walks
from pairmi.training.tables import FitTables, TableTraining, make_tables


def trained(whole: FitTables, share: int, steps: int) -> Mapping[str, Any]:
    """A fresh head after so many steps on one of `share` parts of the sequences."""
    job, head = copy(whole), deepcopy(whole.head)
    job.head, job.optimizer = head, MuonAdamW(dict(head.named_parameters()), dict.fromkeys(head.matrices, 1), whole.config.rates)
    job.train = whole.train[(whole.walks.sequence[whole.train] // HELD_OUT) % share == 0]
    before = job.evaluate()["explained"]
    for step in tqdm(range(steps), desc=f"1/{share}"):
        job.advance(step, learning_rate(step, steps, 50, 0.4))
    return {"sets": len(job.train), "before": before} | job.evaluate()


def main() -> None:
    """Train once for each share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=25, help="of walks")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--shares", type=int, nargs="+", default=[8, 4, 2, 1], help="one of so many parts of the sequences is trained on")
    parser.add_argument("--labels", type=Path, default=Path("runs/coupling/labels"))
    parser.add_argument("--records", type=Path, default=Path("experiments/records/coupling.jsonl"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    model, ledger = load("sudoku", precision="bfloat16"), Ledger(options.records)
    walks, about = make_walks(model, options.labels, options.units)
    whole = make_tables(model, None, walks, about, TableTraining())
    for share in options.shares:
        key = {"what": "curve", "share": share, "steps": options.steps, "head": whole.head.about()} | about
        found = ledger.measured(key, lambda: trained(whole, share, options.steps))  # noqa: B023 (called at once)
        print(f"1/{share}: {found['sets']} sets, {found['explained']:.1%} explained", flush=True)


if __name__ == "__main__":
    main()
