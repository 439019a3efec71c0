"""Maps of a file of proteins: killed and resumed, the same on Ray, in flat memory, and how fast beside plain passes. Results go to docs/maps.md.

python experiments/map_many.py [--data ../shared/data/protein/swissprot_50_100_validation.fasta.gz] [--proteins 200]
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import torch

from pages.maps import write_section
from pairmi.bench import report
from pairmi.loading import load
from pairmi.mi.maps import Way
from pairmi.model import Model
from pairmi.provenance import provenance
from pairmi.tasks.protein.fasta import Record, read_proteins

CODE = "import sys; from pairmi.cli import main; sys.exit(main())"
PIECE = 12  # residues
TIMED = 1000  # rows, at the least
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
        if count and len(pages) > 1 and pages[1] != "0":  # which it is when the process has just ended
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
        for record in cycle(records):
            if rows >= TIMED:
                break
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


def interrupted(records: list[Record], options: argparse.Namespace) -> dict[str, Any]:
    """Kill a run after a third, resume it, do it all again on Ray."""
    fasta, one, ray = (options.runs / name for name in ("some.fasta", "one", "ray"))
    fasta.write_text("".join(f">{record.header}\n{record.text}\n" for record in records))
    run = started(fasta, one, options.model)
    watched(run, one, len(records) // 3)
    run.send_signal(signal.SIGKILL)
    run.wait()
    kept = content(one)
    run = started(fasta, one, options.model)
    run.wait()
    told = run.stdout.read().split(" in ")[0] if run.stdout else ""
    resumed = content(one)
    started(fasta, ray, options.model, "--engine", "ray", "--workers", str(options.workers)).wait()
    untouched = all(resumed.get(name) == held for name, held in kept.items())
    return {"kept": len(kept), "told": told, "there": len(resumed), "untouched": untouched, "same": content(ray) == resumed}


def memory(records: list[Record], options: argparse.Namespace) -> dict[str, Any]:
    """Megabytes of a process that maps many short pieces, by the number of finished maps."""
    fasta, out = options.runs / "pieces.fasta", options.runs / "pieces"
    fasta.write_text("".join(f">{record.name}\n{record.text[:PIECE]}\n" for record in records))
    seen = watched(started(fasta, out, options.model), out)
    marks = [min(seen, key=lambda n: abs(n - share * len(records))) for share in (0.1, 0.5, 1.0)]
    return {"marks": [[mark, seen[mark]] for mark in marks]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    home = Path(__file__).parents[1] / "../shared/data/protein/swissprot_50_100_validation.fasta.gz"
    parser.add_argument("--data", type=Path, default=home)
    parser.add_argument("--model", default="protein")
    parser.add_argument("--proteins", type=int, default=200)
    parser.add_argument("--timed", type=int, default=1, help="proteins for the speed, the shortest")
    parser.add_argument("--pieces", type=int, default=1000, help="short sequences for the memory")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runs", type=Path, default=Path("runs/map-many"), help="an empty or new folder")
    parser.add_argument("--out", type=Path, default=Path("docs/maps.md"))
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    if any(options.runs.iterdir()):
        raise SystemExit(f"{options.runs} is not empty")
    torch.set_num_threads(1)
    os.environ.setdefault("RAY_worker_niceness", "0")
    every = read_proteins(options.data)
    records = every[: options.proteins]
    found = interrupted(records, options)
    print(found, flush=True)
    grown = memory(every[: options.pieces], options)
    print(grown, flush=True)
    model = load(options.model, precision="bfloat16")
    lines = speed(model, sorted(records, key=lambda record: len(record.text))[: options.timed])
    about = ", ".join(f"{key} {value}" for key, value in provenance().items())
    text = f"""## A file of {len(records)} proteins

Printed by `python experiments/map_many.py --proteins {len(records)}` ({about}).

`pairmi map --backbone {options.model} --sequence some.fasta {" ".join(BY)} --out FOLDER` writes a parquet file for each sequence. It was killed (SIGKILL) when {found["kept"]} files were there, and the same command was given again: {found["told"]}, {found["there"]} of {len(records)} are there, the first ones {"untouched" if found["untouched"] else "CHANGED"}.
With `--engine ray --workers {options.workers}` all files are {"the same, byte by byte" if found["same"] else "NOT the same"}. Memory of a process that maps {options.pieces} pieces of {PIECE} residues: {", ".join(f"{size:.0f} MB after {count}" for count, size in grown["marks"])}.

Rows a second of CPU time, one thread, on the {options.timed} shortest of the proteins, beside as many plain passes of the model over the same lengths in the same batches (two blocks, one deal, floor 0). Above 100 % is noise: the machine was shared.

{report.table(lines, tuple(lines[0]))}
"""
    write_section(options.out, "map_many.py", text)
    print(text)
    sys.exit(not (found["same"] and found["untouched"] and found["there"] == len(records)))


if __name__ == "__main__":
    main()
