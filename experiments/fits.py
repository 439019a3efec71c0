"""Fit whole models by `pairmi fit`, each killed once in the middle, and decode by what it tuned: the measured part of docs/fit.md.

    python experiments/fits.py [protein bert antiberty] [--work runs/fits] [--page]

Wall time is that of both starts together. Each fit is kept in --records; --page fits nothing, writes what there is.
"""

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pairmi
import tiny_bert
from pairmi.backbones.checkpoint import load_tensors
from pairmi.bench import report
from pairmi.bench.ledger import Ledger
from pairmi.loading import HEAD_FILE

MARK = "<!-- below: written by experiments/fits.py -->"
PROTEINS = "../shared/data/protein/swissprot_50_100_train.fasta.gz"
RECORDS = Path(__file__).parent / "records"
LOOPS = ((25, 35), (49, 58), (88, 102))  # of a chain, by place
HIDDEN = 40  # chains
WHOLE = ("head.safetensors", "report.html", "README.md")
STAGES = ("start", "labels", "head", "calibrate", "tune", "check", "price", "report")
COMMAND = "import sys; from pairmi.cli import main; sys.exit(main())"  # the script `pairmi`, by the same Python


@dataclass(frozen=True)
class Case:
    """What is fitted, for how long, when it is killed, and what is decoded afterwards."""

    title: str
    backbone: str  # or a folder within --work
    data: str
    minutes: float
    kill: float  # minutes
    canvas: str
    options: tuple[str, ...] = ()  # of the command


def chains() -> list[str]:
    """Antibody chains that AntiBERTy has made."""
    return [line for line in (RECORDS / "antiberty_samples.fasta").read_text().splitlines() if not line.startswith(">")]


def without_loops(chain: str) -> str:
    """About the three loops that bind hidden."""
    return "".join("." if any(first <= place < last for first, last in LOOPS) else residue for place, residue in enumerate(chain))


CASES = {
    "protein": Case("`protein`", "protein", PROTEINS, 20, 9, "." * 64),
    "bert": Case("a BERT of 3 layers with random weights (`experiments/tiny_bert.py`)", "bert/model", "bert/data.txt", 4, 2, "." * 20),
    "antiberty": Case(
        f"AntiBERTy, on chains that it made (experiments/records/antiberty_samples.fasta), and {HIDDEN} of these with the loops hidden ({len(LOOPS)} stretches)",
        *("antiberty", "antibodies.txt", 18, 8, without_loops(chains()[-1]), ("--precision", "bfloat16")),
    ),
}


def fitted(case: Case, work: Path, out: Path) -> dict[str, Any]:
    """Fit from an empty folder, with a SIGKILL in the middle."""
    local = [str(work / part) if (work / part).exists() else part for part in (case.backbone, case.data)]
    command = [sys.executable, "-c", COMMAND, "fit", "--backbone", local[0], "--data", local[1]]
    command += ["--minutes", f"{case.minutes:g}", "--out", str(out), "--threads", "1", *case.options]
    began, first, clock = time.monotonic(), subprocess.Popen(command), out / "work" / "clock.json"
    try:
        first.wait(60 * case.kill)
    except subprocess.TimeoutExpired:
        while first.poll() is None and not clock.is_file():  # on a slow machine it has not begun
            time.sleep(0.5)
        first.send_signal(signal.SIGKILL)
        first.wait()
    before, killed = json.loads(clock.read_text()), first.returncode == -signal.SIGKILL
    subprocess.run(command, check=True)
    seconds = time.monotonic() - began
    model = pairmi.load(local[0], head=str(out))
    found = pairmi.decode(model, case.canvas)  # by the tuned rule
    return {
        "seconds": seconds,
        "killed": list(before)[-1] if killed else "",
        "whole": all((out / name).stat().st_size > 0 for name in WHOLE),
        "stages": json.loads(clock.read_text()),
        "plan": json.loads((out / "work" / "plan.json").read_text()),
        "rule": load_tensors(out / HEAD_FILE)[1]["rule"]["words"],
        "card": re.findall(r"R2 (-?[\d.]+), rank correlation (-?\d+\.\d+)", (out / "README.md").read_text()),
        "reliability": [one for one in _records(out / "work" / "records.jsonl") if one["settings"]["what"] == "reliability"],
        "passes": found.passes,
        "sequential": int((model.vocab.encode(case.canvas, "the canvas") == model.vocab.size).sum()),
    }


def _records(file: Path) -> list[dict[str, Any]]:
    kept = ("settings", "budget", "measured", "error")
    return [{name: one[name] for name in kept if name in one} for one in Ledger(file).found.values()]


def prepare(name: str, work: Path) -> None:
    """What is not in the package: a BERT of one's own, antibodies."""
    work.mkdir(parents=True, exist_ok=True)
    if name == "bert" and not (work / "bert/data.txt").is_file():
        (work / "bert").mkdir(exist_ok=True)
        tiny_bert.main(work / "bert")
    if name == "antiberty" and not (work / "antibodies.txt").is_file():
        lines = [*chains(), *map(without_loops, chains()[-HIDDEN:])]
        (work / "antibodies.txt").write_text("".join(f"{line}\n" for line in lines))


def section(records: dict[str, dict[str, Any]]) -> str:
    """The figures, in a table and in words."""
    rows, words = list[dict[str, Any]](), list[str]()
    for name, case in CASES.items():
        if name not in records:
            continue
        one = records[name]
        wall = one["seconds"] / 60
        true = sum(abs(check["measured"] / check["budget"] - 1) <= 0.2 for check in one["reliability"])
        rows.append(
            {"model": name, "asked (min)": case.minutes, "took (min)": round(wall, 2)}
            | {"within 20 %": "yes" if abs(wall / case.minutes - 1) <= 0.2 else "no", "killed in": one["killed"]}
            | {"whole": "yes" if one["whole"] else "no", "R2": one["card"][0][0] if one["card"] else ""}
            | {"rank correlation": one["card"][0][1].rstrip(".") if one["card"] else ""}
            | {"budgets within 20 %": f"{true} of {len(one['reliability'])}", "passes": one["passes"], "sequential": one["sequential"]}
        )
        stages = ", ".join(f"{stage} {one['stages'].get(stage, 0.0):.0f}" for stage in STAGES)
        words.append(f"* {case.title}: seconds by stage: {stages}. {one['rule']}")
    commits = ", ".join(dict.fromkeys(one["provenance"]["commit"][:7] for one in records.values()))
    return (
        f"{MARK}\n\n## Measured\n\nPrinted by `python experiments/fits.py` (commits {commits}; one thread of a CPU that others use too). Each "
        "fit began with an empty folder, was killed (SIGKILL) in the stage that the table names and started again; `took` is both starts, "
        "loading included. `passes` are those of `pairmi.decode(model, canvas)` with no rule named, on an empty canvas (AntiBERTy: a chain without its loops).\n\n"
        f"{report.table(rows, tuple(rows[0]))}\n\n" + "\n".join(words) + "\n"
    )


def main() -> None:
    """Fit what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default="all", choices=[*CASES, "all"], metavar="CASE")
    parser.add_argument("--page", action="store_true", help="fit nothing, write the page")
    parser.add_argument("--work", type=Path, default=Path("runs/fits"), help="folder for what is fitted")
    parser.add_argument("--records", type=Path, default=RECORDS / "fits.jsonl")
    parser.add_argument("--out", type=Path, default=Path("docs/fit.md"))
    options = parser.parse_args()
    ledger = Ledger(options.records)
    for name in [] if options.page else CASES if options.cases == "all" else options.cases:
        if ledger.find({"case": name, "minutes": CASES[name].minutes}) is None:
            prepare(name, options.work)
            shutil.rmtree(options.work / f"{name}-fit", ignore_errors=True)
            found = fitted(CASES[name], options.work, options.work / f"{name}-fit")
            ledger.add({"case": name, "minutes": CASES[name].minutes}, found)
    records = {name: one for name in CASES if (one := ledger.find({"case": name, "minutes": CASES[name].minutes})) is not None}
    if records:
        before = options.out.read_text().partition(MARK)[0] if options.out.is_file() else ""
        options.out.write_text(before.rstrip() + "\n\n" + section(records))


if __name__ == "__main__":
    main()
