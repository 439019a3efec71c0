"""Rules compared on a validation half of a reference; the best of each, and the paper's Table 2, on the test half with another seed."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm import tqdm

from pairmi.bench import protein, report
from pairmi.bench.generation import Made
from pairmi.bench.protein import TABLE_2, Yardstick, embed, embedder, lengths_like, yardstick
from pairmi.bench.sequence_sets import difference
from pairmi.types import PairmiError
from studies.novelty import Nearest
from studies.protein_maker import Maker

OWN = (1000, 1001, 1)  # seeds of one-by-one samples where there is no reference: validation, test, noise floor (the test's own baseline)


QUALITY = (*protein.QUALITY, "identity", "perplexity", "recovery")


@dataclass(frozen=True)
class Setup:
    """What is generated, and what it is compared with."""

    lengths: Sequence[int]
    validation: Sequence[str]
    test: Sequence[str]
    others: Sequence[str]  # more of the reference's kind, for the noise floor
    kind: str  # what these are
    tried: Sequence[int]  # lengths of what is compared on the validation half


def natural(texts: Sequence[str], count: int, source: str, tried: int | None = None) -> Setup:
    """Two halves of `count` sequences of a reference; of what is left, up to four times as many say what chance makes.

    Settings are `tried` on so many sequences, or as many as are tested.
    """
    if len(texts) < 3 * count:
        raise PairmiError(f"bench protein: {source} holds {len(texts)} sequences; two halves and the noise floor need {3 * count}")
    mixed = [texts[place] for place in np.random.default_rng(0).permutation(len(texts))]
    lengths, fewer = (lengths_like([len(text) for text in texts], number) for number in (count, tried or count))
    return Setup(lengths, mixed[:count], mixed[count : 2 * count], mixed[2 * count : 6 * count], "natural", fewer)


def own(maker: Maker, lengths: Sequence[int], tried: Sequence[int]) -> Setup:
    """The model's own one-by-one samples as the reference: what a rule loses, not how good the model is. Settings are `tried` on fewer.

    What one by one comes to in the test is then the noise floor itself.
    """
    validation, test, others = (
        maker.generate("sequential", some, seed).texts for some, seed in zip((tried, lengths, lengths), OWN, strict=True)
    )
    return Setup(lengths, validation, test, others, "one by one, again", tried)


@dataclass(frozen=True)
class Study:
    """What came out, and what it was measured with."""

    validation: list[dict[str, Any]]  # a record a setting
    best: list[str]  # of each rule the setting that validation chose
    tested: list[dict[str, Any]]
    made: dict[str, Made]  # for the test
    yard: Yardstick  # of the test


def chosen(records: Sequence[dict[str, Any]], passes: float) -> list[str]:
    """Of each rule the setting with the smallest divergence among those of at most so many passes; a rule without one has none."""
    quick = [record for record in records if record["passes"] <= passes]
    families = dict.fromkeys(report.family(record["rule"]) for record in quick)
    return [min((r for r in quick if report.family(r["rule"]) == family), key=lambda r: r["jsd"])["rule"] for family in families]


def study(maker: Maker, setup: Setup, settings: Sequence[str], table: Sequence[str] = TABLE_2, passes: float = 16.0, k: int = 15) -> Study:
    """Compare `settings` on the validation half; report `table` and the best of each rule within `passes` on the test half.

    In the test everything is compared with one by one too; on the validation half only if that is among the settings.
    """
    reader = embedder(maker.model)
    embedded = embed(reader, setup.others)
    validation, test = (yardstick(reader, half, embedded, k) for half in (setup.validation, setup.test))
    base = validation.count(maker.generate("sequential", setup.tried, 0).texts) if "sequential" in settings else None
    records = []
    for spec in tqdm(settings, desc="validation", unit="setting", file=sys.stderr):
        records.append({"half": "validation"} | validation.judge(spec, maker.generate(spec, setup.tried, 0), base))
    best = chosen(records, passes)
    final = list(dict.fromkeys((*table, *best)))
    rules = tqdm(dict.fromkeys(("sequential", *final)), desc="test", unit="setting", file=sys.stderr)
    made = {spec: maker.generate(spec, setup.lengths, 1) for spec in rules}
    base = test.count(made["sequential"].texts)
    return Study(records, best, [{"half": "test"} | test.judge(spec, made[spec], base) for spec in final], made, test)


def quality(maker: Maker, texts: Sequence[str], yard: Yardstick, nearest: Nearest | None, scored: int) -> dict[str, Any]:
    """What else can be said of sequences; pseudo-perplexity and the identity with training sequences of the first `scored` only."""
    some = texts[:scored]
    record = protein.quality(texts, yard.texts) | {"perplexity": maker.perplexity(some)}
    return record if nearest is None else record | {"identity": float(np.median([nearest.identity(text) for text in some]))}


def qualities(maker: Maker, found: Study, setup: Setup, nearest: Nearest | None, scored: int) -> list[dict[str, Any]]:
    """Everything but the divergence, of the reference's own kind and of every set of the test."""
    records = [{"rule": setup.kind} | quality(maker, setup.others[: len(setup.test)], found.yard, nearest, scored)]
    for record in tqdm(found.tested, desc="quality", unit="setting", file=sys.stderr):
        spec = record["rule"]
        recovered = maker.recover(spec, setup.test[:scored])
        records.append({"rule": spec, "recovery": recovered} | quality(maker, found.made[spec].texts, found.yard, nearest, scored))
    return records


def duels(found: Study, ours: Sequence[str], theirs: Sequence[str]) -> list[dict[str, Any]]:
    """How much further each of ours is from the test half than each of theirs, with the interval of the difference."""
    counts = {spec: found.yard.count(found.made[spec].texts) for spec in dict.fromkeys((*ours, *theirs))}
    records = []
    for one in ours:
        for other in theirs:
            more = difference(counts[one], counts[other], found.yard.counts)
            passes = {"passes": found.made[one].passes, "its_passes": found.made[other].passes}
            records.append({"rule": one, "against": other} | passes | {"more": more.value, "more_low": more.low, "more_high": more.high})
    return records
