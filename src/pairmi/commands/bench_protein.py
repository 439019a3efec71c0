"""`pairmi bench protein` and `pairmi bench contacts`."""

import argparse
import sys
from typing import Any

from tqdm import tqdm

from pairmi.bench import contacts, protein, protein_study, report
from pairmi.bench.generation import Maker
from pairmi.bench.ledger import Ledger
from pairmi.loading import load
from pairmi.mi.contexts import Contexts, averaged_mi
from pairmi.mi.probe import Probe
from pairmi.tasks.protein.fasta import read_proteins
from pairmi.tasks.protein.lengths import lengths_like
from pairmi.tasks.protein.novelty import Nearest
from pairmi.tasks.protein.structures import read_structures
from pairmi.types import PairmiError


def run_protein(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Settings are compared on a validation half; of each rule the best is measured again, on a test half, with other seeds."""
    model = load(options.backbone, head=options.head[0] if options.head else None)
    maker = Maker(model, Ledger(options.records), options.batch)
    setup = _setup(maker, options, options.limit or 500)
    table = options.rules or protein.TABLE_2
    found = protein_study.study(maker, setup, options.rules or protein.all_settings(), table, options.passes, options.clusters)
    _print_tables(found, len(setup.test), options)
    nearest = Nearest([record.text for record in read_proteins(options.data)]) if options.data else None
    qualities = protein_study.qualities(maker, found, setup, nearest, options.scored)
    print(f"\n{report.table(qualities, protein.QUALITY)}")
    if options.figure:
        sets = {setup.kind: setup.others[: len(setup.test)]} | {spec: found.made[spec].texts for spec in ("sequential", *found.best)}
        protein.draw_protein(found.yard, sets, found.validation, options.figure)
    return [*found.validation, *found.tested, *({"half": "test"} | record for record in qualities)]


def _setup(maker: Maker, options: argparse.Namespace, count: int) -> protein_study.Setup:
    """What to generate, and what to compare it with."""
    if options.reference is not None:
        texts = [record.text for record in read_proteins(options.reference, maker.model.longest)]
        return protein_study.natural(texts, count, str(options.reference))
    low, _, high = options.lengths.partition("-")
    if not (low.isdigit() and high.isdigit() and int(low) <= int(high)):
        raise PairmiError(f"--lengths {options.lengths}: expected a range such as 108-125")
    return protein_study.own(maker, lengths_like(range(int(low), int(high) + 1), count))


def _print_tables(found: protein_study.Study, size: int, options: argparse.Namespace) -> None:
    kind = "one-by-one samples of the model itself" if options.reference is None else f"natural sequences of {options.reference.name}"
    floor = found.yard.floor
    print("Jensen-Shannon divergence in nats (root: its square root, as scipy gives it)")
    print(f"over {options.clusters} clusters, {size} sequences against {size};")
    print("more: than one by one. Intervals: 95 %, bootstrap. Reference: " + kind)
    print(f"Noise floor, reference against its own kind: {floor.value:.4f} ({floor.low:.4f} to {floor.high:.4f})")
    print(f"\nValidation half, all settings:\n\n{report.table(found.validation, protein.COLUMNS)}")
    print(f"\nTest half, Table 2 and the best of each rule at {options.passes:g} passes or fewer:\n")
    print(report.table(found.tested, protein.COLUMNS))


def run_contacts(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Precision over a folder of structures, or the map of one heavy chain."""
    model, probe = load(options.backbone), Probe(batch_rows=options.batch)
    ways = Contexts(options.blocks, options.deals)
    if options.chain:
        matrix = averaged_mi(model, model.vocab.encode(options.chain, "chain"), ways, probe).matrix.numpy()
        regions = contacts.region_records(options.chain, matrix)
        print(report.table(regions, ("between", "pairs", "mean_nats")))
        if options.figure:
            contacts.draw_regions(options.chain, matrix, f"{model.name}: mutual information of a heavy chain", options.figure)
        return regions
    if options.folder is None:
        raise PairmiError("bench contacts: --folder DIR (PDB files) or --chain SEQUENCE (a heavy chain) is missing")
    records: list[dict[str, Any]] = []
    structures = read_structures(options.folder, model.longest)[: options.limit]
    for number, structure in enumerate(tqdm(structures, desc="contacts", unit="protein", file=sys.stderr)):
        scores, rows = contacts.pair_scores(model, structure.text, ways, probe)
        records += contacts.contact_records(structure, scores, rows)
        if number == 0 and options.figure:
            contacts.draw_contacts(structure, scores, options.figure)
    print(report.table(contacts.summary(records), contacts.COLUMNS))
    return records
