"""Which reading of ProteinMPNN's couplings ranks contacts best: chosen on one half of the structures, reported on the other. To docs/maps.md.

    python experiments/contact_variants.py --folder ../shared/data/protein/pdb [--contexts 4] [--noises 2]

One pass a residue and symbol tells all conditionals of the empty sequence; every reading is a function of these. Random contexts and shaken
coordinates are looked at by draws. What each structure needs is kept in --records: an interrupted run goes on where it stopped.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pages.maps import write_section
from pairmi.api import decode
from pairmi.backbones.proteinmpnn import ProteinMPNN
from pairmi.bench import report
from pairmi.bench.stats import Interval, mean_interval
from pairmi.draw import Streams
from pairmi.info import apc, entropy
from pairmi.loading import load
from pairmi.mi.sampled import SampledProbe
from pairmi.model import Model
from pairmi.provenance import provenance
from pairmi.tasks.protein.contacts import precision
from pairmi.tasks.protein.scaffold import Scaffold, read_scaffold

SEPARATION = 6
HALVES = ("first half", "second half")
AIM = 0.8  # precision at L, of mutual information
SHAKEN = 0.1  # Angstrom, of every atom and coordinate
Matrices = dict[str, np.ndarray]


def conditionals(model: Model) -> tuple[Tensor, Tensor]:
    """log p_j(w) of the empty sequence, [L, V], and log q_j(w | X_i = v), [L, V, L, V]."""
    length, size = int(model.length or 0), model.vocab.size
    empty = torch.full((1, length), size)
    rows = []
    for i in range(length):
        fixed = empty.repeat(size, 1)
        fixed[:, i] = torch.arange(size)
        rows.append(model.backbone(fixed).log_probs)
    return model.backbone(empty).log_probs[0], torch.stack(rows)


def readings(log_p: Tensor, log_q: Tensor) -> Matrices:
    """Directed, [changed i, observed j]."""
    weight, q = log_p.exp()[:, :, None], log_q.exp()
    mixture = (weight[..., None] * q).sum(1, keepdim=True)
    odds = log_q - log_q.mean(3, keepdim=True)
    odds = odds - odds.mean(1, keepdim=True)
    both = weight[..., None] * log_p.exp()
    weighted = log_q - (log_p.exp() * log_q).sum(3, keepdim=True)
    weighted = weighted - (weight[..., None] * weighted).sum(1, keepdim=True)
    joint = (weight * (q * (log_q - mixture.log())).sum(3)).sum(1)
    entropies = entropy(log_p)
    found = {
        "MI (joint)": joint,
        "MI (kl)": (weight * (q * (log_q - log_p)).sum(3)).sum(1),
        "TV": (weight * 0.5 * (q - log_p.exp()).abs().sum(3)).sum(1),
        "MI (joint) / smaller entropy": joint / torch.minimum(entropies[:, None], entropies),
        "log-odds, norm": odds.square().sum((1, 3)).sqrt(),
        "log-odds, norm weighted by the marginals": (both * weighted.square()).sum((1, 3)).sqrt(),
    }
    return {name: matrix.numpy() for name, matrix in found.items()}


def drawn(model: Model, tokens: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """MI (kl) of the unknown pairs of a canvas by four draws a position, and which pairs these are."""
    prediction = model(tokens[None])
    found = SampledProbe("kl", 4).measure(prediction, model, Streams(seed, torch.zeros(1, dtype=torch.long)), each=1).matrix[0]
    return found, prediction.masked[0].outer(prediction.masked[0])


def in_contexts(model: Model, count: int) -> np.ndarray:
    """The mean over contexts in which half of the residues, drawn by the model itself, are known."""
    length = int(model.length or 0)
    samples = decode(model, [torch.full((length,), model.vocab.size)] * count, "top-k:k=8,by=random", seed=5)
    total, times = torch.zeros(2, length, length, dtype=torch.double)
    for number, sample in enumerate(samples):
        hidden = torch.randperm(length, generator=torch.Generator().manual_seed(number))[: length // 2]
        found, seen = drawn(model, sample.tokens.scatter(0, hidden, model.vocab.size), number)
        total, times = total + found, times + seen
    mean: np.ndarray = (total / times.clamp_min(1)).numpy()
    return mean


def shaken(model: Model, scaffold: Scaffold, count: int) -> np.ndarray:
    """The mean over structures whose coordinates have noise."""
    total = np.zeros((len(scaffold.text),) * 2)
    for number in range(count):
        noise = np.random.default_rng(number).normal(0, SHAKEN, scaffold.atoms.shape)
        network = model.backbone
        assert isinstance(network, ProteinMPNN)
        moved = replace(model, backbone=network.given(scaffold.atoms + noise, scaffold.chains, scaffold.index))
        total += drawn(moved, torch.full((len(scaffold.text),), model.vocab.size), number)[0].numpy()
    return total / count


def kept(file: Path, name: str, make: Callable[[], Matrices], folder: Path) -> Matrices:
    out = folder / f"{file.stem}-{name}.npz"
    if not out.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(out, **make())  # type: ignore[arg-type]
    with np.load(out) as found:
        return dict(found)


def matrices(file: Path, options: argparse.Namespace) -> Matrices:
    """Every reading of a structure, symmetrised in every way, with and without APC."""
    model, scaffold = load("proteinmpnn", structure=file), read_scaffold(file)
    found = kept(file, "empty", lambda: readings(*(part.double() for part in conditionals(model))), options.records)
    directed = dict(found)
    symmetric: Matrices = {}
    if options.contexts:
        name = f"MI (kl) in {options.contexts} contexts"
        symmetric |= kept(file, f"contexts{options.contexts}", lambda: {name: in_contexts(model, options.contexts)}, options.records)
    if options.noises:
        name = f"MI (kl), coordinates shaken {options.noises} times"
        symmetric |= kept(file, f"noises{options.noises}", lambda: {name: shaken(model, scaffold, options.noises)}, options.records)
    for name, matrix in directed.items():
        symmetric |= {f"{name}, mean": (matrix + matrix.T) / 2, f"{name}, larger": np.maximum(matrix, matrix.T)}
    rooted = {f"root of {name}": np.sqrt(matrix.clip(0)) for name, matrix in symmetric.items() if name.startswith("MI")}
    return {f"{name}{how}": of(matrix) for name, matrix in (symmetric | rooted).items() for how, of in READ.items()}


def corrected(matrix: np.ndarray) -> np.ndarray:
    """With the average product correction."""
    whole: np.ndarray = apc(torch.from_numpy(np.array(matrix, dtype=np.float64))).numpy()
    return whole


READ: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {"": lambda matrix: matrix, ", APC": corrected}


def section(found: Mapping[str, Matrices], scaffolds: Mapping[str, Scaffold], options: argparse.Namespace) -> str:
    halves = [list(scaffolds)[0::2], list(scaffolds)[1::2]]
    names = list(next(iter(found.values())))

    def scores(name: str, among: list[str]) -> np.ndarray:
        return np.array([precision(found[s][name], scaffolds[s].contacts, SEPARATION, len(scaffolds[s].text)) for s in among])

    rows: list[dict[str, Any]] = [
        {"reading": name} | {half: float(scores(name, among).mean()) for half, among in zip(HALVES, halves, strict=True)} for name in names
    ]

    def chosen(among: list[dict[str, Any]]) -> tuple[str, Interval]:
        """The best of one half on the other, both ways: in words, and over all structures."""
        best = [max(among, key=lambda row: row[half])["reading"] for half in HALVES]
        told = list(zip(HALVES, best, reversed(halves), strict=True))
        each = mean_interval(np.concatenate([scores(name, half) for _, name, half in told]))
        lines = [f"chosen on the {way} `{name}`, on the other {scores(name, half).mean():.3f}" for way, name, half in told]
        return f"{'; '.join(lines)}; together **{each.value:.3f} [{each.low:.3f}, {each.high:.3f}]**", each

    rows = sorted(rows, key=lambda row: -row["first half"] - row["second half"])
    about = ", ".join(f"{key} {value}" for key, value in provenance().items())
    (every, _), (ours, kept_by) = chosen(rows), chosen([row for row in rows if "MI" in row["reading"]])
    reached = "missed" if kept_by.value < AIM else "met" if kept_by.low < AIM else "met, with the whole interval"
    return f"""### Which reading ranks contacts best?

Printed by `python experiments/contact_variants.py --folder ../shared/data/protein/pdb --contexts {options.contexts} --noises {options.noises}` ({about}).

Precision at L (separation {SEPARATION} and more) of {len(names)} readings of the same couplings: three forms of mutual information and norms of the table of conditional log-odds, symmetrised by the mean or the larger, plain or as a root, with the average product correction (APC) or not. The structures are dealt into two halves by turns, and the best reading of one half is reported on the other, so that no structure has a part in choosing how it is read.

* All readings: {every}.
* Mutual information alone: {ours}. So the aim of {AIM} is **{reached}** by mutual information in a reading that other structures have chosen; what it is as it stands is in the table.

Raw MI ranks variable residues first: a pair of them can share more. Divided by what the pair could share at the most, it says how tightly two residues are coupled, which is what a contact is about; the norm of the log-odds does not see the marginals at all.

<details><summary>All readings</summary>

{report.table(rows, ("reading", *HALVES))}

</details>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="PDB files")
    parser.add_argument("--contexts", type=int, default=4, help="random ones a structure; 0 = none")
    parser.add_argument("--noises", type=int, default=2, help="shaken structures; 0 = none")
    parser.add_argument("--records", type=Path, default=Path("runs/contact-variants"))
    parser.add_argument("--out", type=Path, default=Path("docs/maps.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("medium")  # oneDNN's products: two to three times as fast here, still in float32 without AMX
    files = sorted(options.folder.glob("*.pdb"))
    with torch.inference_mode():
        found = {file.stem: matrices(file, options) for file in files}
    text = section(found, {file.stem: read_scaffold(file) for file in files}, options)
    write_section(options.out, "contact_variants.py", text)
    print(text)


if __name__ == "__main__":
    main()
