"""docs/text.md: a real text model, from a string to a map and a filled sentence; whether MI finds words; rules on half-masked sentences.

`python experiments/text.py [--data ../shared/data/text/ud_chinese_gsdsimp_dev.txt.gz]`; what is in --records is not measured again. With --measured nothing is measured:
what is not in the records stays on the page as it stands, such as after `python experiments/sampled_heads.py albert-zh`.
The picture needs a font with Chinese letters.
"""

import argparse
import gzip
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

import pairmi
from pages.text import write
from pairmi.bench.ledger import Ledger
from pairmi.blocks import Window
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.info import entropy_of
from pairmi.mi.sampled import SampledProbe
from pairmi.model import Model
from pairmi.pairs.result import PairMap

RECORDS = Path(__file__).parent / "records"
DRAWS = (1, 4, 16)
DEEP = 64
CHOSEN_ON = 28  # sentences that the scores were tried on first: none of them is reported on
RULES = (
    "sequential",
    *(f"top-k:k={k}" for k in (2, 4)),
    *(f"eb:budget={budget}" for budget in (1, 4)),
    *(f"threshold:threshold={level}" for level in (0.6, 0.3)),
    "mi-guided:draws=2,budget=4",
    *(f"mi-bound:draws=2,budget={budget}" for budget in (0.3, 1)),
    "mi-bound:mi=random,budget=1",
)


@dataclass(frozen=True)
class Sentence:
    """A sentence whose tokens are its letters, with the number of the word of each."""

    text: str
    words: tuple[int, ...]


def sentences(model: Model, file: Path, shortest: int, longest: int) -> list[Sentence]:
    """Those of a file of segmented sentences that the tokenizer takes letter by letter."""
    found = []
    for line in gzip.decompress(file.read_bytes()).decode().splitlines():
        words = line.split()
        text = "".join(words)
        if shortest <= len(text) <= longest and all(letter in model.vocab.symbols for letter in text):
            found.append(Sentence(text, tuple(n for n, word in enumerate(words) for _ in word)))
    return [one for one in found if len(model.vocab.encode(one.text)) == len(one.text)]


def is_ideograph(letter: str) -> bool:
    return "\u3400" <= letter <= "\u9fff"


def windows(model: Model, tokens: torch.Tensor, pairs: list[tuple[int, ...]]) -> Window:
    """A canvas for each group of positions, in which they alone are unknown."""
    places = torch.tensor(pairs)
    canvases = tokens.repeat(len(pairs), 1).scatter(1, places, model.vocab.size)
    return Window(model, canvases, places)


def shared(window: Window, draws: int, number: int, sources: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Sampled MI between the positions of each window, their entropies, and the rows spent."""
    meter = Counting(window)
    prediction = meter(window.tokens)
    rng = Streams(number, torch.arange(len(window.places)))
    found = SampledProbe("kl", draws).measure(prediction, meter, rng, sources, each=1)
    return found.matrix, entropy_of(prediction), int((found.rows + 1).sum())


def pointwise(window: Window, truth: torch.Tensor) -> torch.Tensor:
    """log q(x_j | x_i) - log p(x_j) of the letters that really stand there, both ways averaged: it reads the answer."""
    base, every, total = window(window.tokens).log_probs, torch.arange(len(truth)), 0.0
    for i in (0, 1):
        fixed = window.tokens.clone()
        fixed[:, i] = truth[:, i]
        gain = window(fixed).log_probs[every, 1 - i] - base[every, 1 - i]
        total = total + 0.5 * gain[every, truth[:, 1 - i]]
    return torch.as_tensor(total)


def pair_scores(model: Model, attentive: Model, one: Sentence, number: int, deep: bool) -> dict[str, Any]:
    """Every score of every pair of adjacent ideographs of a sentence."""
    tokens = model.vocab.encode(one.text)
    starts = [i for i in range(len(one.text) - 1) if is_ideograph(one.text[i]) and is_ideograph(one.text[i + 1])]
    window = windows(model, tokens, [(i, i + 1) for i in starts])
    out: dict[str, Any] = {"starts": starts, "same": [int(one.words[i] == one.words[i + 1]) for i in starts], "rows": {}}
    for draws in (*DRAWS, *([DEEP] if deep else [])):
        matrix, entropies, rows = shared(window, draws, 1000 * number + draws)
        out[f"mi{draws}"], out["rows"][str(draws)] = matrix[:, 0, 1].tolist(), rows
    out["entropies"] = entropies.tolist()
    wide = [i for i in starts if 0 < i < len(one.text) - 2]
    around = windows(model, tokens, [(i - 1, i, i + 1, i + 2) for i in wide])
    sources = torch.tensor([[False, True, True, False]]).expand(len(wide), -1)
    matrix, _, _ = shared(around, 4, 1000 * number, sources)
    out["around"] = dict(zip(map(str, wide), matrix[:, 1, 2].tolist(), strict=True))
    truth = torch.stack([tokens[i : i + 2] for i in starts])
    out["pointwise"] = pointwise(window, truth).tolist()
    attention = attentive(window.canvases).attention
    every = torch.arange(len(starts))
    first, second = window.places.T
    out["attention"] = (0.5 * (attention[every, first, second] + attention[every, second, first])).tolist()
    return out


def columns(found: list[dict[str, Any]]) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """The scores of all pairs, whether each is in one word, and its sentence."""
    same = np.concatenate([one["same"] for one in found])
    sentence = np.concatenate([[n] * len(one["same"]) for n, one in enumerate(found)])
    scores = {f"MI, {draws} draws": np.concatenate([one[f"mi{draws}"] for one in found]) for draws in DRAWS}
    first, second = np.concatenate([one["entropies"] for one in found]).T
    mi = scores[f"MI, {DRAWS[-1]} draws"]
    least = np.minimum(first, second)
    scores["MI / smaller entropy"] = mi / np.maximum(least, 1e-9)
    scores["MI / larger entropy"] = mi / np.maximum(np.maximum(first, second), 1e-9)
    scores["MI less that with the next letters"] = np.concatenate([_contrast(one) for one in found])
    scores["MI with the next letters unknown too, 4 draws"] = np.concatenate([_around(one) for one in found])
    scores["attention, mean"] = np.concatenate([one["attention"] for one in found])
    scores["entropy, sum"] = first + second
    scores["entropy, smaller"] = least
    scores["distance"] = np.zeros(len(same))
    scores["pointwise MI of the true letters"] = np.concatenate([one["pointwise"] for one in found])
    return scores, same, sentence


def _contrast(one: dict[str, Any]) -> np.ndarray:
    value = dict(zip(one["starts"], one[f"mi{DRAWS[-1]}"], strict=True))
    return np.array([value[i] - max(value.get(i - 1, 0.0), value.get(i + 1, 0.0)) for i in one["starts"]])


def _around(one: dict[str, Any]) -> np.ndarray:
    return np.array([one["around"].get(str(i), one["mi4"][n]) for n, i in enumerate(one["starts"])])


def auroc(score: np.ndarray, same: np.ndarray, sentence: np.ndarray) -> tuple[float, float, float]:
    """With its 95 % interval over sentences (bootstrap)."""
    rng, groups = np.random.default_rng(0), [np.flatnonzero(sentence == n) for n in np.unique(sentence)]
    values = []
    for _ in range(1000):
        some = np.concatenate([groups[n] for n in rng.integers(len(groups), size=len(groups))])
        if len(set(same[some])) == 2:
            values.append(roc_auc_score(same[some], score[some]))
    low, high = np.quantile(values, (0.025, 0.975))
    return float(roc_auc_score(same, score)), float(low), float(high)


def words(found: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """A line for each score, and those of all together by a logistic regression that has not seen the sentence."""
    scores, same, sentence = columns(found)
    mixes = {
        "entropies and attention, fitted": ["entropy, sum", "entropy, smaller", "attention, mean"],
        "the same and MI, fitted": [
            "entropy, sum",
            "entropy, smaller",
            "attention, mean",
            "MI, 16 draws",
            "MI less that with the next letters",
        ],
    }
    plain = dict(scores)
    for name, parts in mixes.items():
        fit = make_pipeline(StandardScaler(), LogisticRegression())
        inputs = np.stack([plain[part] for part in parts], axis=1)
        scores[name] = cross_val_predict(fit, inputs, same, groups=sentence, cv=GroupKFold(5), method="predict_proba")[:, 1]
    lines = []
    for name, score in scores.items():
        value, low, high = auroc(score, same, sentence)
        inside, across = float(score[same == 1].mean()), float(score[same == 0].mean())
        lines.append({"score": name, "AUROC": f"{value:.3f} [{low:.3f}, {high:.3f}]", "inside words": inside, "across": across})
    deep = [one for one in found if f"mi{DEEP}" in one]
    reference = np.concatenate([one[f"mi{DEEP}"] for one in deep])
    noise = {f"{draws}": float(np.corrcoef(np.concatenate([one[f"mi{draws}"] for one in deep]), reference)[0, 1]) for draws in DRAWS}
    return lines, {"pairs": len(same), "same": int(same.sum()), "sentences": len(found), "deep": len(reference)} | noise


def half_masked(model: Model, some: list[Sentence]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Each sentence with every second of its positions unknown, at random, and what stood there."""
    truth = [model.vocab.encode(one.text) for one in some]
    canvases = []
    for n, tokens in enumerate(truth):
        order = torch.randperm(len(tokens), generator=torch.Generator().manual_seed(n))
        canvases.append(tokens.scatter(0, order[: len(tokens) // 2], model.vocab.size))
    return canvases, truth


def pseudo_log_prob(model: Model, filled: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """log p(x_i | all others) of some positions of a complete sentence, one row each."""
    window = windows(model, filled, [(int(i),) for i in positions])
    return window(window.tokens).log_probs[:, 0].gather(1, filled[positions][:, None])[:, 0]


def filled_by(model: Model, spec: str, canvases: list[torch.Tensor], truth: list[torch.Tensor]) -> dict[str, Any]:
    """Recovery and pseudo-perplexity of greedy decoding by a rule, its cost, and its price."""
    out = pairmi.decode(model, canvases, spec, greedy=True, seed=1, batch_size=16)
    right, scores = 0, []
    for one, canvas, true in zip(out, canvases, truth, strict=True):
        unknown = torch.nonzero(canvas == model.vocab.size)[:, 0]
        right += int((one.tokens[unknown] == true[unknown]).sum())
        scores.append(pseudo_log_prob(model, one.tokens, unknown))
    unknown = sum(int((canvas == model.vocab.size).sum()) for canvas in canvases)
    price = pairmi.price(model, canvases, spec, sequences=len(canvases), batch_size=16)
    return {
        "recovered": right / unknown,
        "perplexity": math.exp(-float(torch.cat(scores).mean())),
        "passes": float(np.mean([one.passes for one in out])),
        "probe_rows": float(np.mean([one.probe_rows for one in out])),
        "price": price.nats / (unknown / len(canvases)),
        "interval": [bound / (unknown / len(canvases)) for bound in price.interval],
        "unknown": unknown,
    }


def sentence_map(model: Model, text: str) -> PairMap:
    """Every pair of letters, both unknown and everything else given: 16 draws."""
    tokens = model.vocab.encode(text)
    pairs = [(i, j) for i in range(len(text)) for j in range(i + 1, len(text))]
    matrix, _, rows = shared(windows(model, tokens, pairs), 16, 0)
    whole = torch.zeros(len(text), len(text), dtype=torch.float64)
    for (i, j), value in zip(pairs, matrix[:, 0, 1].tolist(), strict=True):
        whole[i, j] = whole[j, i] = value
    names = tuple(str(n + 1) for n in range(len(text)))
    return PairMap(whole, tuple(text), names, "mutual information, all else given", "nats", rows, False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[1] / "../shared/data/text/ud_chinese_gsdsimp_dev.txt.gz")
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--deep", type=int, default=2, help=f"of these with {DEEP} draws too")
    parser.add_argument("--fill", type=int, default=50, help="sentences to fill")
    parser.add_argument("--records", type=Path, default=RECORDS / "text.jsonl")
    parser.add_argument(
        "--speed", type=Path, default=RECORDS / "block_costs.jsonl", help="what 'pairmi bench speed --block 32 --json' wrote"
    )
    parser.add_argument("--heads", type=Path, default=RECORDS / "sampled_heads.jsonl", help="what sampled_heads.py measured")
    parser.add_argument("--measured", action="store_true", help="write the page of what is in --records, and measure nothing")
    parser.add_argument("--out", type=Path, default=Path("docs/text.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    model, attentive, ledger = pairmi.load("albert-zh"), pairmi.load("albert-zh", attention=True), Ledger(options.records)
    chosen_on = sentences(model, options.data, 12, 22)[:CHOSEN_ON]
    every = [one for one in sentences(model, options.data, 10, 40) if one not in chosen_on]
    ask = (lambda key, measure: ledger.find(key)) if options.measured else ledger.measured
    found = []
    for n, one in enumerate(tqdm(every[: options.sentences], desc="words")):
        key = {"text": "words", "sentence": one.text, "deep": n < options.deep, "draws": [*DRAWS, DEEP]}
        found.append(ask(key, lambda: pair_scores(model, attentive, one, n, n < options.deep)))  # noqa: B023 (called at once)
    canvases, truth = half_masked(model, every[options.sentences : options.sentences + options.fill])
    filled = []
    for spec in tqdm(RULES, desc="fill"):
        key = {"text": "fill", "rule": spec, "sentences": options.fill, "from": options.sentences}
        filled.append({"rule": spec} | (ask(key, lambda: filled_by(model, spec, canvases, truth)) or {}))  # noqa: B023
    found, filled = [one for one in found if one], [one for one in filled if len(one) > 1]
    write(options, model, words(found) if found else None, filled, lambda text: sentence_map(model, text))


if __name__ == "__main__":
    main()
