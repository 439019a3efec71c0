"""Train learnt tables for a model of any alphabet and length, through its own embeddings.

    python experiments/coupling_tables.py albert-zh [--steps 700] [--out runs/coupling/albert-zh-tables.safetensors]
    python experiments/coupling_models.py --only albert-zh words --tables runs/coupling/albert-zh-tables.safetensors

albert-zh learns from the treebank sentences that coupling_models.py does not report on; protein from sequences of --data. Weights are not in the
package: no licence is stated for those of albert-zh that they belong to. A killed run goes on. The learning curve goes to --records.
"""

import argparse
import random
from pathlib import Path

import torch
from torch import Tensor

from coupling_models import reported
from pairmi.bench.ledger import Ledger
from pairmi.loading import load
from pairmi.model import Model
from pairmi.tasks.protein.fasta import read_proteins
from pairmi.training.loop import export, fit, read_log
from studies.embedded_training import EmbeddedTraining, make_embedded
from text import sentences

PROTEINS = 400  # of the training part that is learnt from


def sequences(model: Model, data: Path) -> list[Tensor]:
    """What is learnt from."""
    if model.name == "albert-zh":
        left_out = {one.text for one in reported(model, data)}
        every = sentences(model, data / "text/ud_chinese_gsdsimp_dev.txt.gz", 8, 10_000)
        return [model.vocab.encode(one.text) for one in every if one.text not in left_out]
    records = read_proteins(data / "protein/swissprot_50_100_train.fasta.gz", 100)
    return [model.vocab.encode(record.text) for record in random.Random(0).sample(records, PROTEINS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=("albert-zh", "protein"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--lots", type=int, default=100, help="of labels: 24 sets each")
    parser.add_argument("--run", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--records", type=Path, default=Path("experiments/records/coupling.jsonl"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = load(options.model)
    lengths, masked = ((16, 32), (0.3, 0.9)) if options.model == "albert-zh" else ((50, 80), (0.2, 1.0))
    config = EmbeddedTraining(lots=options.lots, lengths=lengths, masked=masked)
    job = make_embedded(model, None, sequences(model, options.data), config)
    run = options.run or Path(f"runs/coupling/{options.model}-tables")
    job.read_labels(run / "labels")
    file = fit(job, run, steps=options.steps, warmup=50, decay=0.5, save_every=300, evaluate_every=100)
    export(file, options.out or run.with_suffix(".safetensors"), "tables", torch.float16)
    log = read_log(run / "log.jsonl")
    Ledger(options.records).measured(
        {"what": "embedded", "model": options.model, "steps": options.steps} | job.about(), lambda: {"log": log}
    )
    print(log[-1], flush=True)


if __name__ == "__main__":
    main()
