"""Teach learnt tables what they lose, and write that into their file: what `draw=coupled,defer=NATS` goes by.

    python experiments/coupling_doubt.py [--tables FILE] [--first 35] [--units 35] [--no-write]

Walks are those of `pairmi train tables` (in --labels), units from --first on; what the tables and their doubt are judged on are sequences that
neither saw. The tables themselves stay as they are. The result goes to --records; `python experiments/coupling.py --page` prints it.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

import torch

from pairmi.backbones.checkpoint import fingerprint, load_tensors, save_tensors
from pairmi.bench.ledger import Ledger
from pairmi.loading import load
from pairmi.mi.table import TableHead
from pairmi.training.table_labels import make_walks
from pairmi.training.tables import TableTraining, make_tables
from studies.table_doubt import examples, fit_doubt, judged, with_doubt

TABLES = Path("src/pairmi/weights/sudoku-tables.safetensors")


def main() -> None:
    """Fit, judge, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, default=TABLES)
    parser.add_argument("--first", type=int, default=35, help="unit of walks")
    parser.add_argument("--units", type=int, default=35, help="of walks")
    parser.add_argument("--hidden", type=int, default=48)
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--labels", type=Path, default=Path("runs/coupling/labels"))
    parser.add_argument("--no-write", action="store_true", help="leave the tables as they are")
    parser.add_argument("--records", type=Path, default=Path("experiments/records/coupling.jsonl"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = load("sudoku", tables=str(options.tables), precision="bfloat16")
    assert isinstance(model.tables, TableHead)
    walks, about = make_walks(model, options.labels, options.units, options.first)
    job = make_tables(model, None, walks, about, TableTraining())
    head = with_doubt(model.tables, options.hidden).requires_grad_(False)
    assert head.doubt is not None
    found = examples(job, head)
    head.doubt.requires_grad_(True)
    fit_doubt(head.doubt, found, options.epochs)
    head.doubt.requires_grad_(False)
    result = judged(head.doubt, found)
    print(result, flush=True)
    tensors, described = load_tensors(options.tables)
    tensors |= {name: x.half() for name, x in head.state_dict().items() if name.startswith("doubt.")}
    taught = {"labels": about, "members": int((~found.held_out).sum()), "epochs": options.epochs}
    if not options.no_write:
        save_tensors(options.tables, tensors, described | {"config": asdict(head.config), "doubt": taught})
        model = load("sudoku", tables=str(options.tables))
        assert isinstance(model.tables, TableHead)
        Ledger(options.records).add({"what": "doubt", "tables": fingerprint(model.tables.state_dict())} | taught, result)


if __name__ == "__main__":
    main()
