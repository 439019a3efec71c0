"""What dependence buys on AntiBERTy, a pretrained model: the paper's table 2, its head, the map of a heavy chain. Results go to docs/antibody-results.md.

    python experiments/antibody_results.py [--sequences N] [--head antiberty --labels DIR] [--precision bfloat16]

The reference are the model's own one-by-one samples, so that what a rule loses is measured, not how good the model is. They are written
into --work as FASTA: a head is trained on labels from samples.fasta and judged on labels from the reference of the test:

    pairmi labels     --backbone antiberty --precision bfloat16 --data WORK/samples.fasta --out LABELS --states 640 --positions 4 --shard 16 --floor 0.02
    pairmi train head --backbone antiberty --labels LABELS --layers 6 8 --loss root --rate 3e-3 --inner 24 --forms 4 --rank 8 --mixer 8 --batch 32 --steps 450 --decay 0.7 --run RUN --out FILE
    pairmi labels     --backbone antiberty --precision bfloat16 --data WORK/reference.fasta --out JUDGED --states 96 --positions 4 --shard 16 --floor 0.02 --seed 20

Without a head the rules that look at pairs are left out. Every measurement is kept in --records: an interrupted run goes on where it stopped.
"""

import argparse
from pathlib import Path

import torch
from torch import nn

from pages.antibody import page
from pages.protein import Record
from pairmi.backbones.checkpoint import fingerprint
from pairmi.backbones.identity import identify
from pairmi.bench import head, head_cost, probing, protein
from pairmi.bench.ledger import Ledger
from pairmi.bench.protein import lengths_like
from pairmi.loading import load
from pairmi.mi.maps import Way
from pairmi.mi.probe import Probe
from pairmi.model import Model
from pairmi.store import read_store
from pairmi.training.labels import Effort
from protein_results import table_2
from studies.antibody import draw_regions, region_records
from studies.protein_maker import Maker
from studies.protein_study import Setup, own

# trastuzumab's
HEAVY = "EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAYLQMNSLRAEDTAVYYCSRWGGDGFYAMDYWGQGTLVTVSS"
SETTINGS = (  # about as quick as the paper's rows
    *protein.TABLE_2[1:],
    "top-k:k=8,by=random",
    "eb:budget=4",
    "eb:budget=6",
    "maskgit:steps=10,noise=0",
    "maskgit:steps=15,noise=0",
    "mi-guided:budget=8,penalty=1",
    "mi-bound:budget=0.25,order=lowest-entropy",
    "mi-bound:budget=0.5,order=lowest-entropy",
    "mi-bound:budget=0.25,order=information",
    "independent-set:threshold=0.01",
    "independent-set:threshold=0.02",
)
LEVELS = (0.3, 0.6, 0.9)  # masked shares


def write_samples(setup: Setup, folder: Path) -> None:
    """The one-by-one samples: the reference of the test, and all others."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, texts in (("samples", (*setup.validation, *setup.others)), ("reference", setup.test)):
        every = enumerate(dict.fromkeys(texts))
        (folder / f"{name}.fasta").write_text("".join(f">{name}{number} cluster={number}\n{text}\n" for number, text in every))


def head_part(model: Model, options: argparse.Namespace) -> Record:
    """R^2 on samples that the head did not see, with the controls; cost; rows of the probe."""
    test, settings = read_store(options.labels)
    attentive = load(options.model, attention=True)
    assert model.head is not None
    empty = torch.full((16, int(test.lengths.median())), model.vocab.size)
    curves = head.calibration_curves(load(options.model), test, [options.head])
    head.draw_calibration(curves, options.out.parent / "figures" / "antibody_head.png")
    return {
        "states": len(test),
        "positions": settings["positions"],
        "floor": settings["floor"],
        "scores": list(head.fidelity_records(attentive, test, settings, [options.head])),
        "costs": head_cost.cost_records({"antiberty": (load(options.model, head=options.head), model.head)}, empty),
        "length": empty.shape[1],
        "rows": probing.rows_records(test, settings),
    }


def heavy_chain(options: argparse.Namespace) -> Record:
    """Which regions of a heavy chain share most, by probing in random contexts."""
    model = load(options.model, precision=options.precision)
    found, rows = Way(blocks=options.blocks, deals=1).measure(model, model.vocab.encode(HEAVY))
    matrix = found.numpy()
    draw_regions(HEAVY, matrix, "AntiBERTy: mutual information of a heavy chain", options.out.parent / "figures" / "antibody_map.png")
    return {"regions": region_records(HEAVY, matrix), "rows": rows}


def half_precision(options: argparse.Namespace) -> list[Record]:
    """What lower precision changes: marginals and, of four positions each, the probed MI of a heavy chain masked at three levels."""
    rng, found = torch.Generator().manual_seed(0), {}
    luck = torch.rand(len(LEVELS), len(HEAVY), generator=rng)
    for precision in ("float32", options.precision):
        model = load(options.model, precision=precision)
        tokens = model.vocab.encode(HEAVY).masked_fill(luck < torch.tensor(LEVELS)[:, None], model.vocab.size)
        with torch.inference_mode():
            prediction, probe = model(tokens), Probe(batch_rows=64)
            sources = Effort(4).sources(prediction, torch.zeros_like(prediction.masked))
            found[precision] = (prediction, sources, probe.measure(prediction, model, sources).directed)
    (exact, where, true), (rough, _, told) = found["float32"], found[options.precision]
    records = []
    for row, level in enumerate(LEVELS):
        here = (where[row][:, None] & exact.masked[row]).fill_diagonal_(False)
        x, y = true[row][here].double(), told[row][here].double()
        kl = (exact.log_probs[row].exp() * (exact.log_probs[row] - rough.log_probs[row])).sum(1)[exact.masked[row]].mean()
        r2 = 1 - (x - y).square().sum() / (x - x.mean()).square().sum()
        records.append(
            {"masked": f"{100 * level:g} %", "KL of the marginals": float(kl), "mean MI": float(x.mean()), "R2 of the MI": float(r2)}
        )
    return records


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="antiberty")
    parser.add_argument("--head", help="a head for it")
    parser.add_argument("--labels", type=Path, help="folder of labels that the head is judged by")
    parser.add_argument("--sequences", type=int, default=300, help="to generate by each setting")
    parser.add_argument("--tried", type=int, default=100, help="on the validation half")
    parser.add_argument("--precision", default="float32", choices=("float32", "bfloat16"), help="of the matrix products of the model")
    parser.add_argument("--lengths", type=int, nargs=2, default=(108, 125), metavar=("SHORTEST", "LONGEST"), help="of the sequences")
    parser.add_argument("--passes", type=float, default=16.0, help="the best setting of each rule is chosen up to here")
    parser.add_argument("--clusters", type=int, default=15)
    parser.add_argument("--scored", type=int, default=50, help="sequences for pseudo-perplexity and recovery")
    parser.add_argument("--blocks", type=int, default=4, help="heavy chain: a context masks 2 / blocks of it")
    parser.add_argument("--records", type=Path, default=Path("experiments/records/antibody.jsonl"))
    parser.add_argument("--work", type=Path, default=Path("runs/antibody"), help="where the samples are written")
    parser.add_argument("--out", type=Path, default=Path("docs/antibody-results.md"))
    return parser.parse_args()


def main() -> None:
    options = parsed()
    model = load(options.model, head=options.head, precision=options.precision)
    ledger = Ledger(options.records.with_stem(f"{options.records.stem}-{options.precision}"))
    maker = Maker(model, ledger, batch=8)
    lengths, tried = (lengths_like(range(options.lengths[0], options.lengths[1] + 1), n) for n in (options.sequences, options.tried))
    setup = own(maker, lengths, tried)
    write_samples(setup, options.work)
    table = table_2(maker, setup, SETTINGS, None, options, options.out.parent / "figures" / "antibody.png")
    made_for = {"weights": identify(model), "head": fingerprint(model.head.state_dict()) if isinstance(model.head, nn.Module) else ""}
    fidelity = None
    if options.head and options.labels:
        fidelity = ledger.measured({"part": "head", **made_for, "labels": options.labels.name}, lambda: head_part(model, options))
    about = {"part": "heavy chain", "weights": identify(model), "blocks": options.blocks}
    chain = ledger.measured(about, lambda: heavy_chain(options))
    lowered = None
    if options.precision != "float32":
        lowered = ledger.measured({"part": "half precision", "weights": identify(model)}, lambda: {"rows": half_precision(options)})["rows"]
    text = page(table, fidelity, chain, lowered, model, options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
