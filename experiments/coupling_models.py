"""What exact tables save on other models than Sudoku: price over passes on proteins, designs and Chinese text, and words in the text.

    python experiments/coupling_models.py [--only protein antiberty proteinmpnn albert-zh words word] [--data ../shared/data]

Needs no learnt tables. What is in --records is not measured again; `python experiments/coupling.py --page` writes it into docs/coupling.md.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from pairmi.backbones.identity import identify
from pairmi.bench.ledger import Ledger, depends_on
from pairmi.loading import load
from pairmi.model import Model
from studies.coupling import cost_of_coupling
from studies.coupling_models import blanked, drawn_words, lighting_up, priced_ways
from text import Sentence, half_masked, is_ideograph, sentences

SETS = ("top-k:k=4", "top-k:k=8", "top-k:k=16")  # the most confident first
WORDS = ("sequential", "top-k:k=32", "top-k:k=32,draw=probed")  # all hidden letters one by one, or in one pass
TABLED = ("top-k:k=32", "top-k:k=32,draw=coupled")  # with --tables
TEXT = "text/ud_chinese_gsdsimp_dev.txt.gz"
HIDDEN = (1, 4)  # words of a sentence
PICTURE = ("他喜欢读外国□□作品。", "文")


def emptied(model: Model, length: int, count: int) -> list[Tensor]:
    """Canvases of which nothing is known."""
    return [torch.full((length,), model.vocab.size)] * count


def lots(options: argparse.Namespace, name: str) -> Iterator[tuple[Model, list[Tensor], Mapping[str, Any]]]:
    """The sequences of a model in lots, each with what its measurement depends on beside the rule."""
    if name == "proteinmpnn":
        for file in sorted((options.data / "protein/pdb").glob("*.pdb"))[: options.structures]:
            model = load(name, structure=file)
            yield model, emptied(model, model.length or 0, options.each), {"structure": file.stem}
        return
    precision = "bfloat16" if name == "antiberty" else None
    model = load(name, precision=precision, tables=options.tables)
    if name == "albert-zh":
        canvases, _ = half_masked(model, sentences(model, options.data / TEXT, 16, 30)[: options.sequences])
    else:
        canvases = emptied(model, {"protein": 72, "antiberty": 117}[name], options.sequences)
    for first in range(0, len(canvases), options.lot):
        yield model, canvases[first : first + options.lot], {"first": first, "precision": precision}


def prices(ledger: Ledger, options: argparse.Namespace, name: str) -> None:
    """The price of each set rule."""
    for sets in SETS[: options.sets]:
        for model, canvases, about in tqdm(list(lots(options, name)), desc=f"{name} {sets}"):
            key = {"what": "others" if model.tables is None else "embedded price", "model": name, "sets": sets, "sequences": len(canvases)}
            key |= depends_on(model, sets if model.tables is None else f"{sets},draw=coupled") | about
            ledger.measured(key, lambda: priced_ways(model, sets, canvases, seed=about.get("first", 0)))  # noqa: B023 (called at once)


def two_letter_words(one: Sentence) -> list[tuple[int, int]]:
    """Where the words of two ideographs are."""
    count = {word: one.words.count(word) for word in set(one.words)}
    starts = [n for n in range(len(one.text) - 1) if one.words[n] == one.words[n + 1] and count[one.words[n]] == 2]
    return [(n, n + 1) for n in starts if is_ideograph(one.text[n]) and is_ideograph(one.text[n + 1])]


def reported(model: Model, data: Path, words: int = 120) -> list[Sentence]:
    """The sentences that anything is reported on: tables are trained on others."""
    every = sentences(model, data / TEXT, 2, 10_000)
    hidden = [one for one in every if 14 <= len(one.text) <= 30 and two_letter_words(one)][:words]
    return hidden + [one for one in every if 16 <= len(one.text) <= 30 and one not in hidden][:words]


def words(ledger: Ledger, options: argparse.Namespace) -> None:
    """What is drawn for hidden words, and whether the treebank has it anywhere."""
    model = load("albert-zh", tables=options.tables)
    every = sentences(model, options.data / TEXT, 2, 10_000)
    lexicon = {one.text[i : j + 1] for one in every for i, j in two_letter_words(one)}
    chosen = reported(model, options.data, options.words)[: options.words]
    for hidden in HIDDEN:
        some = [blanked(model.vocab.encode(one.text), two_letter_words(one), hidden, model.vocab.size, n) for n, one in enumerate(chosen)]
        truth = [[one.text[at : at + 2] for at in what.starts] for one, what in zip(chosen, some, strict=True)]
        for spec in WORDS if model.tables is None else TABLED:
            for seed in tqdm(range(options.seeds), desc=f"words {spec}, {hidden} hidden"):
                key = {
                    "what": "words" if model.tables is None else "embedded words",
                    "hidden": hidden,
                    "sentences": len(some),
                    "seed": seed,
                } | depends_on(model, spec)
                ledger.measured(key, lambda: judged(drawn_words(model, some, spec, seed), truth, lexicon))  # noqa: B023


def judged(found: Mapping[str, Any], truth: Sequence[Sequence[str]], lexicon: set[str]) -> dict[str, Any]:
    """With whether each pair is a word of the treebank, and the one that stood there."""
    pairs = found["pairs"]
    known = [[pair in lexicon for pair in mine] for mine in pairs]
    right = [[pair == was for pair, was in zip(mine, own, strict=True)] for mine, own in zip(pairs, truth, strict=True)]
    return dict(found) | {"known": known, "right": right, "lexicon": len(lexicon)}


def cost(ledger: Ledger, options: argparse.Namespace) -> None:
    """What learnt tables take beside passes."""
    model = load("albert-zh", tables=options.tables)
    canvases, _ = half_masked(model, [one for one in reported(model, options.data) if len(one.text) == 26])
    for spec in ("top-k:k=4,draw=coupled", "top-k:k=8,draw=coupled"):
        key = {"what": "embedded cost", "sentences": len(canvases)} | depends_on(model, spec)
        ledger.measured(key, lambda: cost_of_coupling(model, spec, torch.stack(canvases)))  # noqa: B023


def word(ledger: Ledger) -> None:
    """One masked word: what drawing its first letter tells of the second."""
    model, (text, letter) = load("albert-zh"), PICTURE
    start = text.index("□")
    canvas = model.vocab.encode(text.replace("□", "一")).index_fill(0, torch.tensor([start, start + 1]), model.vocab.size)
    key = {"what": "word", "text": text, "letter": letter, "weights": identify(model)}
    ledger.measured(key, lambda: lighting_up(model, canvas, start, letter))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = ("protein", "antiberty", "proteinmpnn", "albert-zh", "words", "word", "cost")
    parser.add_argument("--only", nargs="+", choices=every, default=every)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sequences", type=int, default=24, help="of a model")
    parser.add_argument("--lot", type=int, default=12, help="sequences measured at once")
    parser.add_argument("--sets", type=int, default=len(SETS), help="so many of the set rules, the first ones")
    parser.add_argument("--tables", help="learnt tables of the one model that is measured (coupling_tables.py)")
    parser.add_argument("--structures", type=int, default=8)
    parser.add_argument("--each", type=int, default=3, help="sequences of a structure")
    parser.add_argument("--words", type=int, default=120, help="sentences with hidden words")
    parser.add_argument("--seeds", type=int, default=3, help="draws of each")
    parser.add_argument("--records", type=Path, default=Path("experiments/records/coupling.jsonl"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    ledger = Ledger(options.records)
    for what in options.only:
        if what == "words":
            words(ledger, options)
        elif what == "word":
            word(ledger)
        elif what == "cost":
            cost(ledger, options)
        else:
            prices(ledger, options, what)


if __name__ == "__main__":
    main()
