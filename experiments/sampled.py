"""docs/sampled.md: probing by draws: unbiased, with which error, at what price; and heads that learn from drawn labels.

    python experiments/sampled.py [--seeds N] [--data FASTA] [--rows N] [--heads MODEL[=FILE] ...] [--only PART]

Every measurement is kept in --records: an interrupted run goes on where it stopped, and the page can be written from parts that were
measured one by one (--only). With --data, a FASTA file of the protein model's training sequences, heads learn from labels that cost equal
rows; they are validated and tested on exact labels of other families, which must be there:

    pairmi labels --backbone protein --precision bfloat16 --data FASTA --shard 128 --each 6 --seed 1 --form kl --floor 0 --positions 4 --states 512 --only test --out RECORDS/protein-test
    pairmi labels ... --only validation --out RECORDS/protein-validation

--heads scores heads on the test store of their backbone: MODEL is the one in the package, MODEL=FILE another, such as one from

    pairmi labels --backbone protein --precision bfloat16 --data FASTA --shard 64 --each 6 --only train --draws 1 --positions 16 --states 3072 --out RECORDS/protein-1x16
    pairmi train head --backbone protein --precision bfloat16 --labels RECORDS/protein-1x16 RECORDS/protein-validation --layers 2 4 6 --rate 3e-3 --inner 64 --forms 8 --batch 32 --steps 2000 --decay 0.7 --run RUN --out FILE
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

from pairmi.backbones.checkpoint import save_tensors
from pairmi.backbones.tabular import Tabular
from pairmi.bench import fidelity, report
from pairmi.bench.head import predicted_by
from pairmi.bench.ledger import Ledger
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.loading import load, with_head
from pairmi.mi.probe import Probe
from pairmi.mi.sampled import DIVERGENCES, SampledProbe, split
from pairmi.model import Model
from pairmi.provenance import provenance
from pairmi.store import joined_labels, read_store
from pairmi.tasks.protein.fasta import read_proteins
from pairmi.tasks.tables import random_table
from pairmi.training.distill import Distill, DistillConfig, make_head
from pairmi.training.labels import Effort, Probing, make_labels
from pairmi.training.length_buckets import typical_share
from pairmi.training.loop import fit
from pairmi.training.optimizer import Rates
from pairmi.training.states import ProteinStates
from pairmi.types import Backbone, Prediction, Tokens, Vocab

Record = dict[str, Any]
PROTEIN = "MKT.Y...A.QRQ.S..KSHF..QLE....GLIEVQ.PIL.R.G.GTQDN"  # 18 of 53 residues unknown
HEAVY = "EVQLVESGGGLVQPGGSLRLSCAASG....DTYIHWVRQAPGKGLEWVARI...NGYTRYADSVKGRFTISADTSKNTAYLQMNSLRAEDTAVYYC......DGFY.MDYWGQGTLVTVSS"
LAYERS, SIZES = [2, 4, 6], {"inner": 64, "forms": 8, "rank": 16, "mixer": 16, "hops": 0, "edges": 4, "reach": 0}
WAYS: dict[str, tuple[int, int]] = {  # of spending rows: draws (0 = every symbol) and positions of a state (0 = all)
    "every symbol, all positions": (0, 0),
    "every symbol, 4 positions": (0, 4),
    "4 draws, 4 positions": (4, 4),
    "2 draws, 8 positions": (2, 8),
    "1 draw, 16 positions": (1, 16),
    "1 draw, 4 positions": (1, 4),
}


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
    limit = float(torch.distributions.Normal(0.0, 1.0).icdf(torch.tensor(1 - 0.025 / len(true))))
    return {
        "form": form,
        "draws": draws,
        "pairs": len(true),
        "rows": 1 + int(found.rows[0]),
        "1 + N K": 1 + int((tokens == backbone.vocab.size).sum()) * min(draws, backbone.vocab.size),
        "largest z": float(z.abs().max()),
        "allowed": limit,
        "means inside their own 95 %": float((z.abs() <= 1.96).double().mean()),
        "true error / mean": float(spread.mean() / true.mean()),
        "estimated / true variance": float(errors.square().mean() / spread.square().mean().clamp_min(1e-30)),
        "1.96 errors cover": float(covered[0]),
        "Student's 95 % cover": float(covered[1]),
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
    for name, each in (("exact and tail, two in a stratum (measurements)", 2), ("exact and tail, one in a stratum (rules, labels)", 1)):
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
        f = DIVERGENCES["kl"](model(rows).log_probs[:, others], base[others].expand(len(rows), -1, -1)).T
        found.append((base[i].double().exp(), f))
    return found


def compared(found: Tables, draws: Sequence[int]) -> list[Record]:
    """Variances, the mean over the unknown positions of a canvas, relative to plain draws."""
    total = {k: [variances(p, f, k) for p, f in found] for k in draws}
    sums = {k: {name: sum(one[name] for one in each) for name in each[0]} for k, each in total.items()}
    return [{"way": name} | {f"K = {k}": sums[k][name] / sums[k]["plain"] for k in draws} for name in sums[draws[0]]]


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


def labelled(model: Model, way: str, options: argparse.Namespace) -> Path:
    """A store of labels that cost about `rows` rows."""
    draws, positions = WAYS[way]
    probe: Probing = SampledProbe("kl", draws) if draws else Probe("kl", 0.0)
    each = 1 + (draws or 20) * (positions or 40)
    shard = max(4, min(64, options.rows // each // 8))
    folder = options.records / f"study-{draws}x{positions}"
    states = ProteinStates(read_proteins(options.data, model.longest), each=6)
    count = round(options.rows / each / 0.85)  # what belongs to families for validation and test is left out
    make_labels(model, states, folder, count, probe=probe, effort=Effort(positions, "train"), shard=shard, quiet=True)
    return folder


def learnt(way: str, options: argparse.Namespace) -> Record:
    """R2 on families new to a head that learns from these labels."""
    model = load("protein", precision="bfloat16")
    drawn, settings = read_store(labelled(model, way, options))
    test, _ = read_store(options.records / "protein-test")
    held_out, _ = read_store(options.records / "protein-validation")
    head = make_head("low-rank", model, LAYERS, SIZES, 0)
    head.begin_at(typical_share(drawn))  # type: ignore[operator]
    config = DistillConfig(batch=32, rates=Rates(muon=0.015, adam=3e-3), precision="bfloat16")
    job = Distill(model, head, LAYERS, joined_labels([drawn, held_out]), settings, config)
    run = options.records / "run-{}x{}".format(*WAYS[way])
    fit(job, run, steps=options.steps, warmup=50, decay=0.7, save_every=500, evaluate_every=100, quiet=True)
    file = run / "head.safetensors"
    save_tensors(file, head.state_dict(), {"kind": "head", **job.about()})
    return {"states": len(drawn), "rows": int(drawn.rows.sum()), **scored("protein", str(file), test)}


def scored(name: str, file: str, test: Any) -> Record:
    """R2 of a head on labels."""
    guided = with_head(load(name, precision="bfloat16"), file)
    within = test.known(guided.vocab.size)
    predicted = predicted_by(guided.head, guided, test)  # type: ignore[arg-type]
    flat, truth = predicted[within], test.mi[within]
    scores = {"R2": fidelity.r2(flat, truth), "Spearman": fidelity.spearman(flat, truth)}
    return scores | {"test states": len(test), "pairs": len(truth), "mean MI": float(truth.mean())}


def parts(options: argparse.Namespace) -> dict[str, Callable[[], Record]]:
    """What the page is made of."""

    def draws() -> Record:
        return {
            "rows": [
                {"world": name} | unbiased(backbone, tokens, form, k, options.seeds)
                for name, (backbone, tokens) in worlds().items()
                for form in ("kl", "tv")
                for k in ((16, 32, 64, 128) if backbone.vocab.size > 500 else (2, 4, 8, 16))
                if k < backbone.vocab.size
            ]
        }

    def ways() -> Record:
        known = {name: tables(load(name), canvas) for name, canvas in (("protein", PROTEIN), ("antiberty", HEAVY))}
        controls = [{"backbone": name} | controlled(found) for name, found in known.items()]
        return {name: compared(found, (2, 4, 8, 16)) for name, found in known.items()} | {"controls": controls}

    def errors() -> Record:
        backbone, tokens = worlds()["protein"]
        return {"rows": [stopped(backbone, tokens, error, options.seeds // 4) for error in (0.004, 0.002, 0.001)]}

    found: dict[str, Callable[[], Record]] = {"draws": draws, "ways": ways, "errors": errors}
    if options.data is not None:
        found |= {f"study {way}": (lambda way=way: {"row": {"labels": way} | learnt(way, options)}) for way in WAYS}
    return found


def heads(options: argparse.Namespace) -> str:
    """The heads in the package, and what else stands in --heads, on families new to them."""
    rows = []
    for item in options.heads:
        name, _, file = item.partition("=")
        test, settings = read_store(options.records / f"{name}-test")
        rows.append(
            {"backbone": name, "head": Path(file or "in the package").name, "form": settings["form"]} | scored(name, file or name, test)
        )
    return report.table(rows, tuple(rows[0])) if rows else "Not measured."


def page(found: dict[str, Record], options: argparse.Namespace) -> str:
    """docs/sampled.md."""
    about = ", ".join(f"{key} {value}" for key, value in provenance().items())
    study = [record["row"] for name, record in found.items() if name.startswith("study")]
    first = found["draws"]["rows"]
    columns = [column for column in first[0] if column not in ("1 + N K", "allowed")]
    assert all(row["rows"] == row["1 + N K"] for row in first)
    assert all(abs(row["bias"]) < 0.1 * row["error"] for row in found["errors"]["rows"])
    return f"""# Probing by draws

Printed by `python experiments/sampled.py --seeds {options.seeds}` ({about}).

The `kl` form is an expectation, I(i -> j) = E_(v ~ p_i) KL(q_(j|v) || p_j), and so is `tv`: a symbol that is drawn from p_i tells, in one row, an unbiased value for every j, whatever the vocabulary. `draws=K` spends K rows a position, 1 + N K in all.

* **The likeliest symbols exactly, the tail by draws.** With m exact symbols and T = K - m draws from the tail of mass t the variance is at most t^2 / T times that of one draw from the tail; m is the best of those with m <= K (1 - t), for which no function has more variance than with K plain draws.
* **Strata.** The tail is cut into strata of equal mass. Rules and labels draw once in each, which has the least variance; a measurement (`mutual_information`, `pairmi mi`) draws twice in each, so that every stratum tells its own variance: its squared standard error is unbiased. With one draw in all there is none, and the error is infinite; where K reaches the number of symbols, it is 0 and the probe is full.
* **The error is a standard error, not a promise.** Of few draws of something skewed it is rough, and 1.96 errors cover less than 95 %; Student's t with K degrees of freedom is nearer: see the last columns. `error=E` draws again, as often as before, until every entry's standard error is at most E; it also heeds what all pairs together say of the spread, as two draws may be alike by chance.

```python
import pairmi

world = pairmi.load("sudoku4")
found = pairmi.mutual_information(world, "1" + "." * 15, draws=2)
assert found.rows == 1 + 15 * 2 and found.error.shape == (16, 16)
assert pairmi.decode(world, "." * 16, "mi-bound:mi=probe,draws=2").probe_rows > 0
```

`pairmi mi --canvas FILE --draws 4 --error 0.05` prints the same; `mi=probe,draws=4` (or `...,form=tv`) is for rules, `pairmi labels --out DIR --states 1024 --draws 1 --positions 16` for heads.

## Unbiased, and how far intervals can be trusted

{options.seeds} seeds each. `largest z`: of the means over seeds, in their own standard errors; {max(row["allowed"] for row in first):.2f} would be too much for one of so many pairs. Rows are exactly 1 + N K in every line.

{report.table(first, columns)}

No mean is further off than chance allows for so many pairs. Intervals cover 93-97 % only where the tail has many symbols and many draws; from a few draws over 20 symbols with a skewed tail they cover far less, however wide Student makes them, as what was not seen differs from what was. For certainty use `floor=`, which bounds the error, or more draws.

## Ways of drawing, at equal rows

Exact variances (no simulation but for `systematic`), relative to K plain draws, the mean over the unknown positions of one canvas each. `protein`, almost flat marginals:

{report.table(found["ways"]["protein"], tuple(found["ways"]["protein"][0]))}

AntiBERTy, peaked ones:

{report.table(found["ways"]["antiberty"], tuple(found["ways"]["antiberty"][0]))}

Systematic draws (one random number for all strata) are about as good as one in a stratum, but can be worse than plain draws; sorting the tail by probability helps little, and a large vocabulary is sorted far slower than its likeliest symbols are found.

**Control variates** (for labels: the current head times what is known of the symbol). The share of the variance of a draw that would be left if the head were perfect:

{report.table(found["ways"]["controls"], tuple(found["ways"]["controls"][0]))}

The surprise of a symbol predicts nothing of what it moves. A factor for each symbol saves at best as many rows as the table says, with a perfect head; it was not built.

## Until an error

`protein`, from 4 draws; the number of rows depends on what was drawn, so the result is biased by the last column: less than a tenth of the error asked for. Rounds are wasteful near the size of the alphabet: the full probe takes 20 rows a position here.

{report.table(found["errors"]["rows"], tuple(found["errors"]["rows"][0]))}

## Labels at equal rows

{f"Heads for `protein` (layers {LAYERS}, {options.steps} steps of 32 states, squared error) from labels that cost about {options.rows} rows, on exact labels (`kl`) of families new to them:" if study else "Not measured."}

{report.table(study, tuple(study[0])) if study else ""}

## Heads

On labels of families (AntiBERTy: sequences) new to the head:

{heads(options)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="FASTA file of the protein model's training sequences")
    parser.add_argument("--rows", type=int, default=16384, help="of labels in each way of the study")
    parser.add_argument("--steps", type=int, default=800, help="of training in the study")
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--heads", nargs="*", default=[], metavar="MODEL[=FILE]", help="to score on the store RECORDS/MODEL-test")
    parser.add_argument("--records", type=Path, default=Path("runs/sampled"))
    parser.add_argument("--only", help="measure this part and write no page")
    parser.add_argument("--out", type=Path, default=Path("docs/sampled.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    ledger, found = Ledger(options.records / "measured.jsonl"), {}
    for name, part in parts(options).items():
        if options.only in (None, name):
            settings = {"part": name, "seeds": options.seeds} | ({"rows": options.rows, "steps": options.steps} if "study" in name else {})
            found[name] = ledger.measured(settings, part)
    if options.only is None:
        options.out.write_text(page(found, options))
        print(options.out.read_text())


if __name__ == "__main__":
    main()
