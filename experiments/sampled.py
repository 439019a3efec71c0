"""docs/sampled.md: probing by draws: unbiased, with which error, at what price; and heads that learn from drawn labels.

    python experiments/sampled.py [--seeds N] [--only PART]

Every measurement is kept in --records: an interrupted run goes on where it stopped, and the page can be written from parts that were
measured one by one (--only). With --measured nothing is measured, and what is not in --records stays on the page as it stands.

Heads over the number of rows are made by sampled_heads.py, whose records the page reads.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from scipy import stats
from torch import Tensor

from pages.sampled import page
from pairmi.backbones.tabular import Tabular
from pairmi.bench.ledger import Ledger
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.info import kl
from pairmi.loading import load
from pairmi.mi.probe import Probe
from pairmi.mi.sampled import SampledProbe, interval, split
from pairmi.model import Model
from pairmi.tasks.tables import random_table
from pairmi.types import Backbone, Prediction, Tokens, Vocab
from sampled_heads import RECORDS

Record = dict[str, Any]
PROTEIN = "MKT.Y...A.QRQ.S..KSHF..QLE....GLIEVQ.PIL.R.G.GTQDN"  # 18 of 53 residues unknown
HEAVY = "EVQLVESGGGLVQPGGSLRLSCAASG....DTYIHWVRQAPGKGLEWVARI...NGYTRYADSVKGRFTISADTSKNTAYLQMNSLRAEDTAVYYC......DGFY.MDYWGQGTLVTVSS"
COLUMNS = (  # of what is measured over seeds
    *("form", "draws", "pairs", "rows", "1 + N K", "largest z", "means inside their own 95 %", "true error / mean"),
    *("estimated / true variance", "1.96 errors cover", "Student's 95 % cover", "`interval` covers", "its upper end / value"),
)
LABELS = "exact and tail, one in a stratum (rules, labels)"


@dataclass
class Remembering:
    """A backbone that evaluates no canvas twice: what is fixed in a small canvas is soon all known."""

    backbone: Backbone
    known: dict[tuple[int, ...], Prediction] = field(default_factory=dict)

    @property
    def vocab(self) -> Any:
        return self.backbone.vocab

    @property
    def length(self) -> int | None:
        return self.backbone.length

    def __call__(self, tokens: Tokens) -> Prediction:
        rows = [tuple(row) for row in tokens.tolist()]
        for row in dict.fromkeys(rows):
            if row not in self.known:
                self.known[row] = self.backbone(torch.tensor([row]))
        log_probs = torch.cat([self.known[row].log_probs for row in rows])
        return Prediction(tokens, log_probs, log_probs[:, :, :1])


@dataclass(frozen=True)
class Large:
    """Three positions over 600 symbols; what is seen at one moves the logits of the others by random numbers."""

    size: int = 600
    length: int = 3

    @property
    def vocab(self) -> Vocab:
        return Vocab(tuple(map(chr, range(1000, 1000 + self.size))), ".")

    def __call__(self, tokens: Tokens) -> Prediction:
        rng = torch.Generator().manual_seed(0)
        base, moves = (torch.randn(n, self.size, generator=rng, dtype=torch.float64) for n in (3, self.size))
        seen = torch.where((tokens < self.size)[:, :, None], moves[tokens.clamp_max(self.size - 1)], 0).sum(1, keepdim=True)
        log_probs = torch.log_softmax(base + 0.7 * seen, -1)
        return Prediction(tokens, log_probs, log_probs[:, :, :1])


def worlds() -> dict[str, tuple[Remembering, Tokens]]:
    """Exact tables, a large alphabet, and the protein model."""
    rng = torch.Generator().manual_seed(0)
    found: dict[str, tuple[Remembering, Tokens]] = {}
    for name, length, size in (("table of 5 symbols", 5, 5), ("table of 35 symbols", 3, 35)):
        world = random_table(length, size, rng, 0.0, 1.0)
        found[name] = Remembering(Tabular(world.support, world.weights, world.symbols)), torch.full((1, length), size)
    found["600 symbols"] = Remembering(Large()), torch.full((1, 3), 600)
    model = load("protein")
    return found | {"protein": (Remembering(model), model.vocab.encode(PROTEIN)[None])}


def unbiased(backbone: Remembering, tokens: Tokens, form: str, draws: int, seeds: int) -> Record:
    """The mean over seeds against the full form, entry by entry, and how often single intervals cover it."""
    every, meter = tokens.expand(seeds, -1), Counting(backbone, 10**9)
    truth = Probe(form, 0.0).measure(backbone(tokens), backbone).matrix[0]  # type: ignore[arg-type]
    prediction = meter(tokens)
    found = SampledProbe(form, draws).measure(  # type: ignore[arg-type]
        Prediction(every, prediction.log_probs.expand(seeds, -1, -1), prediction.hidden.expand(seeds, -1, -1)),
        meter,
        Streams(0, torch.arange(seeds)),
    )
    upper = torch.triu((tokens[0] == backbone.vocab.size)[:, None] & (tokens[0] == backbone.vocab.size), 1)
    values, errors, true = found.matrix[:, upper], found.error[:, upper], truth[upper]
    spread = values.std(0)
    z = (values.mean(0) - true) / (spread / seeds**0.5).clamp_min(1e-15)
    student = float(stats.t.ppf(0.975, draws))  # both directions together have at most so many strata
    covered = [((values - true).abs() <= wide * errors + 1e-12).double().mean() for wide in (1.96, student)]
    low, high = interval(found.matrix, found.error, found.drawn)[:, :, upper]
    return {
        "form": form,
        "draws": draws,
        "pairs": len(true),
        "rows": 1 + int(found.rows[0]),
        "1 + N K": 1 + int((tokens == backbone.vocab.size).sum()) * min(draws, backbone.vocab.size),
        "largest z": float(z.abs().max()),
        "means inside their own 95 %": float((z.abs() <= 1.96).double().mean()),
        "true error / mean": float(spread.mean() / true.mean()),
        "estimated / true variance": float(errors.square().mean() / spread.square().mean().clamp_min(1e-30)),
        "1.96 errors cover": float(covered[0]),
        "Student's 95 % cover": float(covered[1]),
        "`interval` covers": float(((low <= true + 1e-12) & (true <= high + 1e-12)).double().mean()),
        "its upper end / value": float((high / values.clamp_min(1e-12)).nanmedian()),
    }


def strata_variance(p: Float[Tensor, " V"], f: Float[Tensor, "J V"], sizes: Sequence[int]) -> Float[Tensor, " J"]:
    """Of the mean of draws from strata of p, in the order given, each of a mass proportional to the draws in it."""
    upper, total = p.cumsum(0) * sum(sizes), torch.zeros(len(f), dtype=torch.float64)
    lower, start = torch.cat([upper.new_zeros(1), upper[:-1]]), 0
    for size in sizes:
        q = (upper.clamp(max=start + size) - lower.clamp(min=start)).clamp_min(0) / size
        total += size * ((f - (q * f).sum(1, keepdim=True)).square() * q).sum(1)
        start += size
    return total / sum(sizes) ** 2


def systematic_variance(p: Float[Tensor, " V"], f: Float[Tensor, "J V"], count: int) -> Float[Tensor, " J"]:
    """Of the mean of draws at equal distances behind one random number."""
    levels = ((torch.arange(4000, dtype=torch.float64)[:, None] + 0.5) / 4000 + torch.arange(count)) / count
    place = torch.searchsorted(p.cumsum(0), levels).clamp_max(len(p) - 1)
    return f[:, place].mean(-1).var(1, unbiased=False)


def variances(p: Float[Tensor, " V"], f: Float[Tensor, "J V"], draws: int) -> dict[str, float]:
    """Exact variances at equal rows of every way that was tried, the mean over what is observed."""
    likely = p.argsort(descending=True)
    tail = torch.cat([p.sum()[None], p.sum() - p[likely].cumsum(0)])[: draws + 1][None].clamp_min(0)
    found = {"plain": strata_variance(p / p.sum(), f, [draws])}
    for name, each in (("exact and tail, two in a stratum (measurements)", 2), (LABELS, 1)):
        exact = int(split(tail, draws, each))
        count, rest = draws - exact, p.clone()
        rest[likely[:exact]] = 0
        mass = rest.sum()
        sizes = [each] * max(1, count // each)
        sizes[-1] += count - sum(sizes)
        found[name] = mass**2 * strata_variance(rest / mass, f, sizes)
        if each == 1:
            found["exact and tail, plain draws"] = mass**2 * strata_variance(rest / mass, f, [count])
            found["exact and tail, systematic"] = mass**2 * systematic_variance(rest / mass, f, count)
            sort = rest.argsort()
            found["exact and tail, one in a stratum, sorted"] = mass**2 * strata_variance(rest[sort] / mass, f[:, sort], sizes)
    return {name: float(value.mean()) for name, value in found.items()}


Tables = list[tuple[Float[Tensor, " V"], Float[Tensor, "J V"]]]  # of each unknown position: its marginal, and f_j(v) for every other


def tables(model: Model, canvas: str) -> Tables:
    """What every symbol of every unknown position of a canvas moves."""
    tokens = model.vocab.encode(canvas)
    masked, base, found = tokens == model.vocab.size, model(tokens[None]).log_probs[0], []
    for i in torch.nonzero(masked)[:, 0].tolist():
        rows = tokens.repeat(model.vocab.size, 1)
        rows[:, i] = torch.arange(model.vocab.size)
        others = masked.clone()
        others[i] = False
        f = kl(model(rows).log_probs[:, others], base[others].expand(len(rows), -1, -1)).T
        found.append((base[i].double().exp(), f))
    return found


def compared(found: Tables, draws: Sequence[int]) -> list[Record]:
    """Variances, the mean over the unknown positions of a canvas, relative to plain draws."""
    total = {k: [variances(p, f, k) for p, f in found] for k in draws}
    sums = {k: {name: sum(one[name] for one in each) for name in each[0]} for k, each in total.items()}
    return [{"way": name} | {f"K = {k}": sums[k][name] / sums[k]["plain"] for k in draws} for name in sums[draws[0]]]


def noise(found: Tables, draws: Sequence[int]) -> Record:
    """The variance of drawn labels over that of what is to be learnt: the MI of the pairs of a canvas, each from one side."""
    signal = float(torch.cat([f @ p for p, f in found]).var(unbiased=False))
    drawn = {k: sum(len(f) * variances(p, f, k)[LABELS] for p, f in found) / sum(len(f) for _, f in found) for k in draws}
    return {f"K = {k}": variance / signal for k, variance in drawn.items()}


def controlled(found: Tables) -> Record:
    """What a control g leaves of the variance of f: f - (g - E g), where g is the true MI of the pair times a factor of the symbol.

    The factor is its surprise over the entropy, or a number for each symbol that is fitted on the other positions of the canvas.
    """
    before, left = 0.0, {"surprise of the symbol": 0.0, "a factor for each symbol": 0.0}
    fits = [((p * f * (f @ p)[:, None]).sum(0), (p * (f @ p)[:, None].square()).sum(0)) for p, f in found]
    for n, (p, f) in enumerate(found):
        mean = (f @ p)[:, None]
        above, below = (sum(fit[side] for m, fit in enumerate(fits) if m != n) for side in (0, 1))
        factors = (-p.log() / -torch.xlogy(p, p).sum(), above / below)
        before += float((p * (f - mean).square()).sum())
        for name, factor in zip(left, factors, strict=True):
            rest = f - mean * factor
            left[name] += float((p * (rest - (rest @ p)[:, None]).square()).sum())
    return {name: value / before for name, value in left.items()}


def stopped(backbone: Remembering, tokens: Tokens, error: float, seeds: int) -> Record:
    """What `error` costs and whether it biases."""
    meter = Counting(backbone, 10**9)
    base = meter(tokens)
    prediction = Prediction(tokens.expand(seeds, -1), base.log_probs.expand(seeds, -1, -1), base.hidden.expand(seeds, -1, -1))
    truth = Probe("kl", 0.0).measure(backbone(tokens), backbone).matrix[0]
    found = SampledProbe("kl", 4, error).measure(prediction, meter, Streams(0, torch.arange(seeds)))
    within = truth > 0
    off = found.matrix.mean(0)[within] - truth[within]
    return {
        "error": error,
        "rows a position": float(found.rows.double().mean() / (tokens == backbone.vocab.size).sum()),
        "true root mean square": float((found.matrix - truth)[:, within].square().mean().sqrt()),
        "mean MI": float(truth[within].mean()),
        "bias": float(off.mean()),
    }


def parts(options: argparse.Namespace, ledger: Ledger) -> dict[str, Callable[[], Record]]:
    """What the page is made of."""

    def draws() -> Record:
        lines = []
        for name, (backbone, tokens) in worlds().items():
            large = backbone.vocab.size > 500
            for form in ("kl", "tv"):
                for k in (16, 32, 64, 128) if large else (2, 4, 8, 16):
                    seeds = options.seeds if large else options.seeds * 16 // k  # as many rows: few draws are the most skewed
                    if k < backbone.vocab.size:
                        key = {"part": "draws", "world": name, "form": form, "draws": k, "seeds": seeds}
                        found = ledger.measured(key, lambda: unbiased(backbone, tokens, form, k, seeds))  # noqa: B023 (called at once)
                        lines.append({"world": name, "seeds": seeds} | {key: found[key] for key in COLUMNS})
        return {"rows": lines}

    def ways() -> Record:
        known = {name: tables(load(name), canvas) for name, canvas in (("protein", PROTEIN), ("antiberty", HEAVY))}
        controls = [{"backbone": name} | controlled(found) for name, found in known.items()]
        noises = [{"backbone": name} | noise(found, (1, 2, 4, 8, 16)) for name, found in known.items()]
        return {name: compared(found, (2, 4, 8, 16)) for name, found in known.items()} | {"controls": controls, "noises": noises}

    def errors() -> Record:
        backbone, tokens = worlds()["protein"]
        return {"rows": [stopped(backbone, tokens, error, options.seeds // 4) for error in (0.004, 0.002, 0.001)]}

    return {"draws": draws, "ways": ways, "errors": errors}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--records", type=Path, default=RECORDS / "sampled.jsonl")
    parser.add_argument("--heads", type=Path, default=RECORDS / "sampled_heads.jsonl", help="what sampled_heads.py measured")
    parser.add_argument("--only", help="measure this part and write no page")
    parser.add_argument("--measured", action="store_true", help="write the page of what is in --records, and measure nothing")
    parser.add_argument("--out", type=Path, default=Path("docs/sampled.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    ledger, found = Ledger(options.records), {}
    for name, part in parts(options, ledger).items():
        if options.only in (None, name):
            settings = {"part": name, "seeds": options.seeds}
            record = ledger.find(settings) if options.measured else ledger.measured(settings, part)
            found |= {name: record} if record else {}
    if options.only is None:
        options.out.write_text(page(found, options))
        print(options.out.read_text())


if __name__ == "__main__":
    main()
