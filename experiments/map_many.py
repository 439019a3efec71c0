"""Maps of a file of proteins: killed and resumed, the same on Ray, in flat memory, and how fast beside plain passes. Results go to docs/maps.md.

python experiments/map_many.py [--data ../shared/data/protein/swissprot_50_100_validation.fasta.gz] [--proteins 200]
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

from pages.maps import write_section
from pairmi.bench import report
from pairmi.loading import load
from pairmi.mi.maps import Way
from pairmi.model import Model
from pairmi.provenance import provenance
from pairmi.tasks.protein.fasta import Record, read_proteins

CODE = "import sys; from pairmi.cli import main; sys.exit(main())"
WAYS = ("masking", "jacobian", "substitution", "mi")
BY = ("--by", "masking", "--blocks", "2", "--precision", "bfloat16")


def started(fasta: Path, out: Path, model: str, *more: str) -> subprocess.Popen:
    command = ["map", "--backbone", model, "--sequence", str(fasta), "--out", str(out), *BY, *more]
    return subprocess.Popen([sys.executable, "-c", CODE, *command], stdout=subprocess.PIPE, text=True)


def watched(run: subprocess.Popen, out: Path, until: int | None = None) -> dict[int, float]:
    """Megabytes of the process by the number of finished maps, until it ends or has made so many."""
    memory: dict[int, float] = {}
    while run.poll() is None:
        count = len(list(out.glob("*.parquet")))
        status = Path(f"/proc/{run.pid}/statm")
        pages = status.read_text().split() if status.is_file() else []
        if count and len(pages) > 1:
            memory[count] = int(pages[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        if until is not None and count >= until:
            break
        time.sleep(0.2)
    return memory


def content(out: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(out.glob("*.parquet"))}


def speed(model: Model, records: list[Record]) -> list[dict[str, float | str]]:
    """CPU seconds of a map beside those of as many plain passes over sequences of its length, one after the other."""
    lines = []
    for by in WAYS:
        way, spent, plain, rows = Way(by, blocks=2, deals=1, floor=0.0), 0.0, 0.0, 0
        for record in records:
            tokens = model.vocab.encode(record.text)
            model(tokens[None])
            start = time.process_time()
            _, count = way.measure(model, tokens)
            middle = time.process_time()
            with torch.inference_mode():
                for piece in tokens.repeat(count, 1).split(way.batch_rows):
                    model(piece)
            plain += time.process_time() - middle
            spent, rows = spent + middle - start, rows + count
        lines.append(
            {"by": by, "rows": rows, "rows a CPU second": rows / spent, "plain passes": rows / plain, "speed (%)": 100 * plain / spent}
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    home = Path(__file__).parents[1] / "../shared/data/protein/swissprot_50_100_validation.fasta.gz"
    parser.add_argument("--data", type=Path, default=home)
    parser.add_argument("--model", default="protein")
    parser.add_argument("--proteins", type=int, default=200)
    parser.add_argument("--timed", type=int, default=3, help="proteins for the speed")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runs", type=Path, default=Path("runs/map-many"), help="an empty or new folder")
    parser.add_argument("--out", type=Path, default=Path("docs/maps.md"))
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    if any(options.runs.iterdir()):
        raise SystemExit(f"{options.runs} is not empty")
    torch.set_num_threads(1)
    os.environ.setdefault("RAY_worker_niceness", "0")
    model, records = load(options.model, precision="bfloat16"), read_proteins(options.data)[: options.proteins]
    fasta = options.runs / "some.fasta"
    fasta.write_text("".join(f">{record.header}\n{record.text}\n" for record in records))
    lines = speed(model, sorted(records, key=lambda record: len(record.text))[: options.timed])

    one, ray = options.runs / "one", options.runs / "ray"
    run = started(fasta, one, options.model)
    first = watched(run, one, len(records) // 3)
    run.send_signal(signal.SIGKILL)
    run.wait()
    kept = content(one)
    run = started(fasta, one, options.model)
    second = watched(run, one)
    told = run.stdout.read().split(" in ")[0] if run.stdout else ""
    resumed = content(one)
    print(f"killed after {len(kept)}, then {told}", flush=True)
    run = started(fasta, ray, options.model, "--engine", "ray", "--workers", str(options.workers))
    run.wait()
    same = content(ray) == resumed
    untouched = all(resumed[name] == held for name, held in kept.items())
    counts = sorted(first | second)
    memory = second | first
    early = float(np.median([memory[n] for n in counts if n <= len(records) // 4]))
    late = float(np.median([memory[n] for n in counts if n >= 3 * len(records) // 4]))
    about = ", ".join(f"{key} {value}" for key, value in provenance().items())
    text = f"""## A file of {len(records)} proteins

Printed by `python experiments/map_many.py` ({about}).

`pairmi map --backbone {options.model} --sequence some.fasta {" ".join(BY)} --out FOLDER` writes a parquet file for each sequence. It was killed (SIGKILL) when {len(kept)} files were there, and the same command was given again: {told}, {len(resumed)} of {len(records)} are there, the first ones {"untouched" if untouched else "CHANGED"}.
With `--engine ray --workers {options.workers}` all {len(content(ray))} files are {"the same, byte by byte" if same else "NOT the same"}. Memory of the process: {early:.0f} MB over the first quarter, {late:.0f} MB over the last.

Rows a second of CPU time, one thread, on the {options.timed} shortest of the proteins, beside as many plain passes of the model over the same lengths in the same batches (two blocks, one deal, floor 0):

{report.table(lines, tuple(lines[0]))}
"""
    write_section(options.out, "map_many.py", text)
    print(text)
    sys.exit(not (same and untouched and len(resumed) == len(records)))


if __name__ == "__main__":
    main()
