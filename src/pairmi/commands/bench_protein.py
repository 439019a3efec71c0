"""`pairmi bench protein` and `pairmi bench contacts`."""

import argparse
import sys
from typing import Any

import numpy as np
from tqdm import tqdm

from pairmi.bench import contacts, protein, report
from pairmi.bench.generation import generate
from pairmi.bench.ledger import Ledger
from pairmi.bench.protein import embed, lengths_like
from pairmi.commands.data import whole_range
from pairmi.loading import load
from pairmi.mi.maps import Way
from pairmi.model import Model
from pairmi.spec import rule
from pairmi.tasks.protein.fasta import read_proteins
from pairmi.tasks.protein.residues import speaks_protein
from pairmi.tasks.protein.scaffold import read_structures
from pairmi.types import PairmiError


def _loaded(options: argparse.Namespace, head: str | None = None) -> Model:
    model = load(options.backbone, head=head, precision=options.precision)
    if not speaks_protein(model.vocab):
        raise PairmiError(f"bench {options.name}: {options.backbone} is no model of proteins")
    return model


def run_protein(options: argparse.Namespace, records: list[dict[str, Any]]) -> None:
    """How far the samples of each rule are from a reference, beside what chance alone makes of the reference's own kind."""
    model, specs, file = _loaded(options, options.head), options.rules or protein.TABLE_2, options.records
    ledger = Ledger(file.with_stem(f"{file.stem}-{options.precision}") if file and options.precision else file)  # never mixed
    for spec in specs:
        rule(spec, model)  # refuse what cannot be before anything starts
    lengths, texts, others, kind = _reference(model, ledger, options)
    reader = protein.embedder(model)
    yard = protein.yardstick(reader, texts, embed(reader, others), options.clusters)
    base = yard.count(generate(model, ledger, "sequential", lengths, 0, options.batch).texts)
    for spec in tqdm(specs, desc="protein", unit="rule", file=sys.stderr):
        made = generate(model, ledger, spec, lengths, 0, options.batch)
        records.append(yard.judge(spec, made, base) | protein.quality(made.texts, texts))
    print("Jensen-Shannon divergence in nats (root: its square root, as scipy gives it)")
    print(f"over {options.clusters} clusters, {len(texts)} sequences against {len(texts)};")
    print(f"more: than sequential. Intervals: 95 %, bootstrap. Reference: {kind}")
    print(f"Noise floor, reference against its own kind: {yard.floor.value:.4f} ({yard.floor.low:.4f} to {yard.floor.high:.4f})\n")
    print(f"{report.table(records, protein.COLUMNS)}\n\n{report.table(records, protein.QUALITY)}")
    if options.figure:
        nearer = [record | {"nearness": -record["jsd"]} for record in records]
        report.draw_frontiers({kind: nearer}, "passes", "nearness", options.figure)


def _reference(model: Model, ledger: Ledger, options: argparse.Namespace) -> tuple[list[int], list[str], list[str], str]:
    """Lengths to generate, sequences to compare with, more of them for the noise floor, and what they are.

    Without a file they are the model's own sequential samples: then it is what a rule loses, not how good the model is.
    """
    count, file = options.limit, options.reference
    if file is None:
        low, high = whole_range("--lengths", options.lengths, "108-125")
        lengths = lengths_like(range(low, high + 1), count)
        texts, others = (generate(model, ledger, "sequential", lengths, seed, options.batch).texts for seed in (1000, 1001))
        return lengths, texts, others, "sequential, again"
    texts = [record.text for record in read_proteins(file, model.longest)]
    if len(texts) < 2 * count:
        raise PairmiError(f"bench protein: {file} holds {len(texts)} sequences; the reference and its noise floor need {2 * count}")
    mixed = [texts[place] for place in np.random.default_rng(0).permutation(len(texts))]
    return lengths_like([len(text) for text in texts], count), mixed[:count], mixed[count : 5 * count], "natural"


def run_contacts(options: argparse.Namespace, records: list[dict[str, Any]]) -> None:
    """Precision over a folder of structures."""
    model, way = _loaded(options), Way(blocks=options.blocks, deals=options.deals, batch_rows=options.batch)
    structures = read_structures(options.folder, model.longest)[: options.limit]
    records += contacts.measured(model, structures, way, Ledger(options.records), options.precision, options.figure)
    print(report.table(contacts.summary(records), contacts.COLUMNS))
