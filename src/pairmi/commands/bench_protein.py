"""`pairmi bench protein` and `pairmi bench contacts`."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from pairmi.bench import contacts, protein, report
from pairmi.bench.generation import Maker
from pairmi.bench.ledger import Ledger
from pairmi.mi.contexts import Contexts, averaged_mi
from pairmi.mi.probe import Probe
from pairmi.spec import load
from pairmi.tasks.protein.fasta import read_proteins
from pairmi.tasks.protein.lengths import lengths_like
from pairmi.tasks.protein.novelty import Nearest
from pairmi.tasks.protein.scores import embed
from pairmi.tasks.protein.structures import read_structures
from pairmi.types import PairmiError

OWN = (1000, 1001, 1002)  # seeds of one-by-one samples where there is no reference file: validation, test, noise floor


def run_protein(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Settings are compared on a validation half; of each rule the best is measured again, on a test half, with other seeds."""
    model = load(options.backbone, head=options.head[0] if options.head else None)
    maker, count = Maker(model, Ledger(options.records), options.batch), options.limit or 500
    lengths, halves, others = _references(maker, options, count)
    embedded = embed(model, others)
    validation, test = (protein.yardstick(model, half, embedded, options.clusters) for half in halves)
    records = []
    base = validation.count(maker.generate("sequential", lengths, 0).texts)
    for spec in tqdm(options.rules or protein.all_settings(), desc="validation", unit="setting", file=sys.stderr):
        records.append({"half": "validation"} | validation.judge(spec, maker.generate(spec, lengths, 0), base))
    final = list(dict.fromkeys((*(options.rules or protein.TABLE_2), *protein.chosen(records, options.passes))))
    made = {spec: maker.generate(spec, lengths, 1) for spec in tqdm(("sequential", *final), desc="test", unit="setting", file=sys.stderr)}
    base = test.count(made["sequential"].texts)
    tested = [{"half": "test"} | test.judge(spec, made[spec], base) for spec in final]
    _print_tables(records, tested, test, len(halves[1]), options)
    qualities = _qualities(maker, {spec: made[spec].texts for spec in final}, test, others, options)
    print(f"\n{report.table(qualities, protein.QUALITY)}")
    if options.figure:
        sets = {"sequential": made["sequential"].texts} | {spec: made[spec].texts for spec in protein.chosen(records, options.passes)}
        protein.draw_protein(test, {"natural": others[:count]} | sets, records, options.figure)
    return [*records, *tested, *({"half": "test"} | record for record in qualities)]


def _references(maker: Maker, options: argparse.Namespace, count: int) -> tuple[list[int], list[list[str]], list[str]]:
    """The lengths to generate, a reference for validation and one for the test, and more of their kind."""
    if options.reference is None:
        low, _, high = options.lengths.partition("-")
        if not (low.isdigit() and high.isdigit() and int(low) <= int(high)):
            raise PairmiError(f"--lengths {options.lengths}: expected a range such as 108-125")
        lengths = lengths_like(range(int(low), int(high) + 1), count)
        own = [maker.generate("sequential", lengths, seed).texts for seed in OWN]
        return lengths, own[:2], own[2]
    texts = [record.text for record in read_proteins(options.reference)]
    if len(texts) < 3 * count:
        raise PairmiError(
            f"bench protein: {options.reference} holds {len(texts)} sequences; two halves and the noise floor need {3 * count}"
        )
    order = np.random.default_rng(0).permutation(len(texts))
    mixed = [texts[place] for place in order]
    return lengths_like([len(text) for text in texts], count), [mixed[:count], mixed[count : 2 * count]], mixed[2 * count : 6 * count]


def _print_tables(
    records: Sequence[dict[str, Any]], tested: Sequence[dict[str, Any]], test: protein.Yardstick, size: int, options: argparse.Namespace
) -> None:
    kind = "one-by-one samples of the model itself" if options.reference is None else f"natural sequences of {options.reference.name}"
    print("Jensen-Shannon divergence in nats (root: its square root, as scipy gives it)")
    print(f"over {options.clusters} clusters, {size} sequences against {size};")
    print("more: than one by one. Intervals: 95 %, bootstrap. Reference: " + kind)
    print(f"Noise floor, reference against its own kind: {test.floor.value:.4f} ({test.floor.low:.4f} to {test.floor.high:.4f})")
    print(f"\nValidation half, all settings:\n\n{report.table(records, protein.COLUMNS)}")
    print(
        f"\nTest half, Table 2 and the best of each rule at {options.passes:g} passes or fewer:\n\n{report.table(tested, protein.COLUMNS)}"
    )


def _qualities(
    maker: Maker, sets: dict[str, list[str]], test: protein.Yardstick, others: Sequence[str], options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Everything but the divergence, of the reference's own kind and of every set."""
    nearest = Nearest([record.text for record in read_proteins(options.data)]) if options.data else None
    own = "one by one, again" if options.reference is None else "natural"
    records = [{"rule": own} | protein.quality(maker, others[: len(test.texts)], test, nearest, options.scored)]
    for spec, texts in tqdm(sets.items(), desc="quality", unit="setting", file=sys.stderr):
        recovered = maker.recover(spec, test.texts[: options.scored])
        records.append({"rule": spec, "recovery": recovered} | protein.quality(maker, texts, test, nearest, options.scored))
    return records


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
    structures = read_structures(options.folder)[: options.limit]
    for number, structure in enumerate(tqdm(structures, desc="contacts", unit="protein", file=sys.stderr)):
        scores, rows = contacts.pair_scores(model, structure.text, ways, probe)
        records += contacts.contact_records(structure, scores, rows)
        if number == 0 and options.figure:
            contacts.draw_contacts(structure, scores, options.figure)
    print(report.table(contacts.summary(records), contacts.COLUMNS))
    return records
