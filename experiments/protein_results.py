"""What dependence buys on proteins: the paper's table 2 for our model, the model, its head, contacts. Results go to docs/protein-results.md.

    python experiments/protein_results.py --train FASTA --validation FASTA [--labels DIR] [--pdb DIR] [--proteins N] [--only PART]

Settings are chosen on a validation half of the natural sequences and reported on the test half. Every measurement is kept in --records, so
that an interrupted run goes on where it stopped; parts may be measured by processes side by side (--only), and a run without --only then
writes the page. A part without what it needs is left out, and the page says so.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from pages.protein import Record, page
from pairmi.backbones.checkpoint import fingerprint
from pairmi.backbones.identity import identify
from pairmi.bench import contacts, head, head_cost, probing, protein, report
from pairmi.bench.ledger import Ledger
from pairmi.loading import load
from pairmi.mi.maps import Way
from pairmi.model import Model
from pairmi.spec import looks_at_pairs
from pairmi.store import Labels, read_store
from pairmi.tasks.protein.fasta import read_proteins
from pairmi.tasks.protein.scaffold import read_structures
from studies.novelty import Nearest
from studies.protein_corpus import masked_perplexity, unigram_perplexity
from studies.protein_figure import draw_protein
from studies.protein_grid import all_settings
from studies.protein_maker import Maker
from studies.protein_study import Setup, duels, natural, qualities, study

LEVELS = (0.15, 0.3, 0.5, 0.7, 0.85, 1.0)


def thinned(settings: Sequence[str], every: int) -> list[str]:
    """Table 2, and of each rule's other settings every so-manieth, from the middle of the first so many."""
    by_rule: dict[str, list[str]] = {}
    for spec in settings:
        if spec not in protein.TABLE_2:
            by_rule.setdefault(report.family(spec), []).append(spec)
    return [*protein.TABLE_2, *(spec for own in by_rule.values() for spec in own[min(every // 2, len(own) - 1) :: every])]


def table_2(maker: Maker, setup: Setup, settings: Sequence[str], train: Path | None, options: argparse.Namespace, figure: Path) -> Record:
    """These settings on the validation half, Table 2 and the best of each rule on the test half. Without a head no rule looks at pairs."""
    settings, table = (
        [spec for spec in specs if maker.model.head is not None or not looks_at_pairs(spec)] for specs in (settings, protein.TABLE_2)
    )
    found = study(maker, setup, settings, table, options.passes, options.clusters)
    nearest = Nearest([record.text for record in read_proteins(train)]) if train is not None else None
    sets = {setup.kind: setup.others[: len(setup.test)]} | {spec: found.made[spec].texts for spec in ("sequential", *found.best)}
    draw_protein(found.yard, sets, found.validation, figure)
    quick = [spec for spec in found.best if found.made[spec].passes <= options.passes + 1]
    ours, theirs = ([spec for spec in quick if looks_at_pairs(spec) == pairs] for pairs in (True, False))
    return {
        "floor": vars(found.yard.floor),
        "validation": found.validation,
        "best": found.best,
        "tested": found.tested,
        "qualities": qualities(maker, found, setup, nearest, options.scored),
        "duels": duels(found, ours, theirs),
        "apart": duels(found, quick, ["sequential"]),
    }


def proteins(model: Model, options: argparse.Namespace) -> Record:
    texts = [record.text for record in read_proteins(options.validation, model.longest)]
    setup = natural(texts, options.proteins, str(options.validation), options.tried)
    maker = Maker(model, Ledger(options.work / f"protein-sequences-{options.precision}.jsonl"))
    settings = thinned(all_settings(), options.every)
    return table_2(maker, setup, settings, options.train, options, options.out.parent / "figures" / "protein.png")


def perplexities(model: Model, options: argparse.Namespace) -> Record:
    """One sequence of each validation family, so that large families do not decide."""
    train, records = read_proteins(options.train), read_proteins(options.validation, model.longest)
    one_each = list({record.cluster: record.text for record in reversed(records)}.values())[: options.families]
    rows = [
        {"masked": f"{100 * level:g} %", "perplexity": masked_perplexity(model, one_each, level)}
        for level in tqdm(LEVELS, desc="perplexity")
    ]
    return {"families": len(one_each), "rows": rows, "unigram": unigram_perplexity([record.text for record in train], one_each)}


def head_part(model: Model, options: argparse.Namespace) -> Record:
    """R^2 on families that the head did not see, and, with --held-out, on families that the backbone did not see either."""
    labels, settings = read_store(options.labels)
    file = options.head or "protein"
    attentive = load(options.model, attention=True)
    parts: dict[str, tuple[Labels, Record]] = {"families new to the head": (labels.split("test"), settings)}
    if options.held_out is not None:
        parts["families new to the backbone too"] = read_store(options.held_out)
    scores = [
        {"states of": name} | record
        for name, (some, made_by) in parts.items()
        for record in head.fidelity_records(attentive, some, made_by, [file])
    ]
    empty = torch.full((64, int(labels.lengths.median())), model.vocab.size)
    assert model.head is not None
    figures = options.out.parent / "figures"
    head.draw_calibration(
        head.calibration_curves(load(options.model), parts["families new to the head"][0], [file]), figures / "protein_head.png"
    )
    return {
        "states": len(labels),
        "made_by": settings,
        "scores": scores,
        "costs": head_cost.cost_records({Path(file).stem: (model, model.head)}, empty),
        "length": empty.shape[1],
        "rows": probing.rows_records(*list(parts.values())[-1]),
    }


def touching(model: Model, options: argparse.Namespace) -> Record:
    way, plain = Way(blocks=options.blocks, deals=options.deals), load(options.model, precision=options.precision)
    structures, figure = (
        read_structures(options.pdb, model.longest)[: options.structures],
        options.out.parent / "figures/protein_contacts.png",
    )
    records = contacts.measured(plain, structures, way, Ledger(options.records), options.precision, figure)
    return {"summary": contacts.summary(records)}


PARTS: dict[
    str, tuple[Callable[[Model, argparse.Namespace], Record], Sequence[str], Sequence[str]]
] = {  # with what it needs and depends on
    "perplexity": (perplexities, ("train", "validation"), ("families", "precision")),
    "proteins": (proteins, ("train", "validation"), ("proteins", "tried", "every", "passes", "clusters", "scored", "precision")),
    "head": (head_part, ("labels",), ("held_out",)),
    "contacts": (touching, ("pdb",), ("structures", "blocks", "deals", "precision")),
}


def named(value: Any) -> str:
    """A setting as the records know it: of a file its name, wherever it is."""
    return value.name if isinstance(value, Path) else str(value)


def measured(name: str, model: Model, options: argparse.Namespace) -> Record | None:
    """A part, from the records if it was finished; None without what it needs. A head that has not come yet makes no figures of heads."""
    part, needs, depends = PARTS[name]
    if not all(getattr(options, need) for need in needs) or (name == "head" and model.head is None):
        return None
    made_for = {"weights": identify(model), "head": fingerprint(model.head.state_dict()) if isinstance(model.head, torch.nn.Module) else ""}
    settings = {"part": name, **made_for} | {key: named(getattr(options, key)) for key in (*needs, *depends)}
    return Ledger(options.records).measured(settings, lambda: part(model, options))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="protein")
    parser.add_argument("--head", help="default: the embedded one")
    parser.add_argument("--precision", default="float32", choices=("float32", "bfloat16"), help="of the model's matrix products")
    parser.add_argument("--train", type=Path, help="FASTA file that the model was trained on")
    parser.add_argument("--validation", type=Path, help="FASTA file of other families")
    parser.add_argument("--labels", type=Path, help="folder of the labels that the head was trained on")
    parser.add_argument("--held-out", type=Path, help="folder of labels from the validation file")
    parser.add_argument("--pdb", type=Path, help="folder of structures")
    parser.add_argument("--proteins", type=int, default=500, help="to generate by each setting")
    parser.add_argument("--tried", type=int, help="to generate by each setting on the validation half; default: as many as --proteins")
    parser.add_argument("--every", type=int, default=1, help="of each rule's grid take every N-th setting only")
    parser.add_argument("--passes", type=float, default=16.0, help="the best setting of each rule is chosen up to here")
    parser.add_argument("--clusters", type=int, default=15)
    parser.add_argument("--scored", type=int, default=50, help="sequences for pseudo-perplexity, novelty and recovery")
    parser.add_argument("--families", type=int, default=256, help="for the perplexity")
    parser.add_argument("--structures", type=int, default=20)
    parser.add_argument("--blocks", type=int, default=4, help="contacts: a context masks 2 / blocks of a sequence")
    parser.add_argument("--deals", type=int, default=1, help="contacts: how often the blocks are dealt")
    parser.add_argument("--records", type=Path, default=Path("experiments/records/protein.jsonl"))
    parser.add_argument("--work", type=Path, default=Path("experiments/records"), help="where the sequences are kept")
    parser.add_argument("--only", choices=PARTS, help="measure this part and write no page")
    parser.add_argument("--out", type=Path, default=Path("docs/protein-results.md"))
    return parser.parse_args()


def main() -> None:
    options = parsed()
    model = load(options.model, head=options.head, precision=options.precision)
    found = {name: measured(name, model, options) for name in ([options.only] if options.only else PARTS)}
    if options.only is None:
        text = page(found, model, options)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text)
        print(text)


if __name__ == "__main__":
    main()
