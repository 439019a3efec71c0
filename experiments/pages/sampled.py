"""The page that `sampled.py` makes of its measurements, and of the heads that `sampled_heads.py` made."""

import argparse
from statistics import NormalDist
from typing import Any

from pages.sampled_heads import COST, beyond, equal_rows, heads_table, made, measured, picture
from pages.sections import kept
from pairmi.bench import report
from pairmi.provenance import provenance

Record = dict[str, Any]
INTERVAL = "`interval` covers"
ENOUGH = 3  # numbers of rows that make a curve
TARGETS = {"protein": 0.80, "antiberty": 0.85}
LIMITS = {  # what the tables do not say by themselves
    "protein": "The curve is not smooth: R2 hangs on the few large values of a hundred states, and the families to stop by are fewer still (with 83,466 rows they chose a head of 150 steps that is worse than a constant on the others). Beyond 40,000 rows more of them hardly help: four times as many take a head from nothing from 0.64 to 0.68, and one that goes on from the package's from 0.707 to 0.707. So it is not rows that keep the target away; what a head of this size can read from two layers is the next suspect. The one in the package stays there, as its calibration and its rule belong to its weights.",
    "antiberty": "Its test labels are pruned at 0.02 nats; on so few states the curve is not monotone. The one in the package learnt from 640 states of pruned `joint` probes, some 43 rows each ([antibody-results.md](antibody-results.md)): three times the rows of the largest here, and nothing cut. Longer training and a head three times as large were tried once on the families to stop by, without gain.",
}


def coverage(lines: list[Record]) -> str:
    """How often `interval` keeps its promise."""
    values = [line[INTERVAL] for line in lines]
    inside = sum(0.93 <= value <= 0.97 for value in values)
    low, high = min(lines, key=lambda line: line[INTERVAL]), max(lines, key=lambda line: line[INTERVAL])
    ends = (f"{one[INTERVAL]:.3f} ({one['world']}, {one['form']}, {one['draws']} draws)" for one in (low, high))
    return f"`interval` covers 93-97 % in {inside} of {len(lines)} lines; the least is {{}}, the most {{}}.".format(*ends)


def study(found: dict[str, Record], options: argparse.Namespace) -> str:
    """Ways of spending rows on labels; as it stands on the page where it was not measured."""
    table = equal_rows(options.heads)
    return STUDY.format(table=table) if table else kept(options.out, "Labels at equal rows")


def heads(found: dict[str, Record], options: argparse.Namespace) -> str:
    """Heads over the number of rows."""
    names = [name for name in TARGETS if made(options.heads, name)]
    if not names:
        return kept(options.out, "Heads over rows")
    drawn = [name for name in (*names, "albert-zh") if len({one["rows"] for one in made(options.heads, name)}) >= ENOUGH]
    if drawn:
        picture(options.heads, drawn, options.out.parent / "figures" / "sampled_heads.png")
    shown = "\n![heads](figures/sampled_heads.png)\n" if drawn else ""
    parts = "\n".join(heads_of(options, name) for name in names)
    return HEADS.format(shown=shown, beyond=beyond(options.heads, names), parts=parts)


def heads_of(options: argparse.Namespace, name: str) -> str:
    """The heads of one backbone."""
    table, best, cost = heads_table(options.heads, name)
    work, shipped = best["settings"], [one for one in measured(options.heads, name) if one["settings"].get("head")]
    return HEADS_OF.format(
        name=name,
        table=table,
        target=TARGETS[name],
        verdict="reached" if best["R2"] >= TARGETS[name] else "missed",
        draws=work["draws"],
        positions=work["positions"],
        form=work["form"],
        states=best["test states"],
        pairs=best["pairs"],
        mean=best["mean MI"],
        r2=best["R2"],
        shipped=shipped[0]["R2"],
        limits=LIMITS[name],
        cost="" if cost is None else COSTS.format(table=report.table([cost], COST)),
    )


def page(found: dict[str, Record], options: argparse.Namespace) -> str:
    """docs/sampled.md."""
    made = ", ".join(f"{key} {value}" for key, value in provenance().items())
    sections = [unbiased, ways, errors, study, heads]
    return INTRO.format(seeds=options.seeds, made=made) + "".join(section(found, options) for section in sections)


def unbiased(found: dict[str, Record], options: argparse.Namespace) -> str:
    """Means and intervals over seeds."""
    if "draws" not in found:
        return kept(options.out, "Unbiased, and how far intervals can be trusted")
    lines = found["draws"]["rows"]
    allowed = NormalDist().inv_cdf(1 - 0.025 / sum(line["pairs"] for line in lines))
    assert all(line["rows"] == line["1 + N K"] and line["largest z"] < allowed for line in lines)
    columns = [column for column in lines[0] if column != "1 + N K"]
    return UNBIASED.format(allowed=allowed, table=report.table(lines, columns), coverage=coverage(lines))


def ways(found: dict[str, Record], options: argparse.Namespace) -> str:
    """Variances at equal rows."""
    if "ways" not in found:
        return kept(options.out, "Ways of drawing, at equal rows")
    return WAYS.format(**{name: report.table(rows, tuple(rows[0])) for name, rows in found["ways"].items() if isinstance(rows, list)})


def errors(found: dict[str, Record], options: argparse.Namespace) -> str:
    """What `error=` costs and biases."""
    if "errors" not in found:
        return kept(options.out, "Until an error")
    rows = found["errors"]["rows"]
    assert all(abs(row["bias"]) < 0.1 * row["error"] for row in rows)
    return ERRORS.format(table=report.table(rows, tuple(rows[0])))


INTRO = """# Probing by draws

Printed by `python experiments/sampled.py --seeds {seeds}` ({made}).

The `kl` form is an expectation, I(i -> j) = E_(v ~ p_i) KL(q_(j|v) || p_j), and so is `tv`: a symbol that is drawn from p_i tells, in one row, an unbiased value for every j, whatever the vocabulary. `draws=K` spends K rows a position, 1 + N K in all.

* **The likeliest symbols exactly, the tail by draws.** With m exact symbols and T = K - m draws from the tail of mass t the variance is at most t^2 / T times that of one draw from the tail; m is the best of those with m <= K (1 - t), for which no function has more variance than with K plain draws.
* **Strata.** The tail is cut into strata of equal mass. Rules and labels draw once in each, which has the least variance; a measurement (`mutual_information`, `pairmi mi`) draws twice in each, so that every stratum tells its own variance: its squared standard error is unbiased. With one draw in all there is none, and the error is infinite; where K reaches the number of symbols, it is 0 and the probe is full.
* **The error is a standard error, not a promise.** Of few draws of something skewed it is rough, and 1.96 errors cover less than 95 %. `found.interval` covers: it is value x exp(+- t s), s of a log-normal number with that error, not below the relative error that all pairs of the canvas have together; t is Student's with as many degrees of freedom as symbols were drawn at the two positions. `error=E` draws again, as often as before, until every entry's standard error is at most E; it also heeds what all pairs together say of the spread, as two draws may be alike by chance.

```python
import pairmi

world = pairmi.load("sudoku4")
found = pairmi.mutual_information(world, "1" + "." * 15, draws=2)
assert found.rows == 1 + 15 * 2 and found.error.shape == (16, 16)
assert pairmi.decode(world, "." * 16, "mi-bound:mi=probe,draws=2").probe_rows > 0
```

`pairmi mi --canvas FILE --draws 4 --error 0.05` prints the same; `mi=probe,draws=4` (or `...,form=tv`) is for rules, `pairmi labels --out DIR --states 1024 --draws 1 --positions 16` for heads.
"""

UNBIASED = """
## Unbiased, and how far intervals can be trusted

`largest z`: of the means over seeds, in their own standard errors; {allowed:.2f} would be too much for one of all pairs of the table. Rows are exactly 1 + N K in every line. A first run with 300 seeds in every line had z of 4.42 and 4.67 on `protein` with 2 draws, above the limit of that time (3.59); 1,200 and 5,000 seeds of that case gave at most 3.01. That small alphabets get more seeds for few draws, and that the limit is for all pairs of the table, was decided after it.

{table}

No mean is further off than chance allows for so many pairs. {coverage} Plain multiples of the error cover far less where a few symbols are drawn from a skewed tail, however wide Student makes them, as what was not seen differs from what was. `its upper end / value` is the median: what the promise costs. For certainty use `floor=`, which bounds the error, or more draws.
"""

WAYS = """
## Ways of drawing, at equal rows

Exact variances (no simulation but for `systematic`), relative to K plain draws, the mean over the unknown positions of one canvas each. `protein`, almost flat marginals:

{protein}

AntiBERTy, peaked ones:

{antiberty}

Systematic draws (one random number for all strata) are about as good as one in a stratum, but can be worse than plain draws; sorting the tail by probability helps little, and a large vocabulary is sorted far slower than its likeliest symbols are found.

**How noisy labels are.** The variance of a label over the variance of what is to be learnt, the MI of the pairs of the same canvas:

{noises}

One draw is one to three times as noisy as what it tells varies; a head averages that over its states. Whether another draw or another state is worth its row is measured below: another state for `protein` and text; for AntiBERTy, whose second draw takes most of the noise away, probing few states in full was best.

**Control variates** (for labels: the current head times what is known of the symbol). The share of the variance of a draw that would be left if the head were perfect:

{controls}

The surprise of a symbol predicts nothing of what it moves. A factor for each symbol saves at best as many rows as the table says, with a perfect head; it was not built.
"""

ERRORS = """
## Until an error

`protein`, from 4 draws; the number of rows depends on what was drawn, so the result is biased by the last column: less than a tenth of the error asked for. Rounds are wasteful near the size of the alphabet: the full probe takes 20 rows a position here.

{table}
"""

STUDY = """
## Labels at equal rows

Heads from labels of several kinds that cost as many rows; made, stopped and measured like those of the next section (`python experiments/sampled_heads.py MODEL --labels 0x4 1x16 train --rows N`). Of 21,123 symbols nobody can ask all; AntiBERTy's `every symbol` is pruned at 0.02 nats and of the `joint` form, which it is measured on.

{table}
"""

HEADS = """
## Heads over rows

Made by `python experiments/sampled_heads.py protein antiberty`, which names the commands that made the labels. Every head is trained on some of them and stopped where it explains most of a third of the test families; R2 is on the others. The text model's heads are in [text.md](text.md). Shapes are width / forms x rank; a `poisson` loss has, as the squared error, its least at the mean whatever the noise.

What is drawn is the `kl` form, joint + KL(mixture || marginal): where a model contradicts itself, it may be more than min(H_i, H_j), which is the most that a mutual information can be and a head can say. Of the test states that much of it is above, and so much of its variance do the labels explain if they are cut there:

{beyond}

AntiBERTy, trained with 15 % masks, contradicts itself where most is unknown; no head can learn its `kl`, and its heads are measured on the `joint` form. They learn from draws that are cut at their surprise, KL(q_(j|v) || p_j) <= -log p_i(v), which always holds where a model does not contradict itself.
{shown}{parts}"""

HEADS_OF = """
**{name}**: {draws} draw at {positions} random positions of each state; measured on probed `{form}` labels of {states} states of families new to it ({pairs} pairs, mean {mean:.4g} nats). Target {target}: {verdict}, with {r2:.2f} by the head that the families to stop by choose, where the one in the package has {shipped:.2f}.

{table}

{limits}
{cost}"""

COSTS = """
Cost of that head beside a pass, on canvases of which nothing is known:

{table}
"""
