"""`pairmi map`."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from pairmi.commands.canvases import canvas_lines, checked_canvases
from pairmi.commands.document import dumped
from pairmi.commands.engine import chosen_engine, loading_device
from pairmi.loading import load
from pairmi.mapping import Sequence, map_all, mapped
from pairmi.mi.maps import Way
from pairmi.model import Model
from pairmi.pairs.files import WRITERS
from pairmi.pairs.result import PairMap
from pairmi.types import PairmiError


def run(options: argparse.Namespace) -> None:
    """`pairmi map`: print the strongest pairs of each sequence, or write a file each."""
    engine = chosen_engine(options)
    if options.out is None and options.engine != "local":
        raise PairmiError("--engine ray writes files: give a folder with --out")
    if options.out is not None and (options.save or options.json):
        raise PairmiError("--save and --json are for maps that are printed; with --out each is a parquet file")
    if strange := [file.name for file in options.save if file.suffix.removeprefix(".").lower() not in WRITERS]:
        raise PairmiError(f"--save {strange[0]}: expected a name that ends in {', '.join(f'.{kind}' for kind in WRITERS)}")
    model = load(options.backbone, device=loading_device(options), precision=options.precision, structure=options.structure)
    way = Way(
        options.by, options.apc, options.symmetrise, options.symbols, options.drawn,
        options.blocks, options.deals, options.floor, options.batch, options.seed,
    )  # fmt: skip
    if options.out is not None:
        many = options.canvas != "-" and Path(options.canvas).is_file()
        total = sum(1 for _ in canvas_lines(options.canvas)) if many else None
        made = map_all(model, _sequences(model, options), way, options.out, engine, total)
        print(f"{made} maps made in {options.out}")
        return
    for number, one in enumerate(_sequences(model, options)):
        found = mapped(model, one.tokens, way)
        for file in options.save if number == 0 else ():
            found.save(file)
        _print(model, one, found, options)


def _sequences(model: Model, options: argparse.Namespace) -> Iterator[Sequence]:
    for canvas in checked_canvases(model, options, complete=True):
        yield Sequence(canvas.name, canvas.record or f"sequence{canvas.number + 1}", canvas.tokens)


def _print(model: Model, one: Sequence, found: PairMap, options: argparse.Namespace) -> None:
    pairs = found.strongest(options.top)
    if options.json:
        about = {"record": one.record, "sequence": model.vocab.decode(one.tokens), "by": options.by, "unit": found.unit, "rows": found.rows}
        print(dumped(about | {"strongest": [{"i": i, "j": j, "score": score} for i, j, score in pairs]}), flush=True)
        return
    print(f">{one.record}\n{model.vocab.decode(one.tokens)}\n  {found.title}, {found.unit}; {found.rows} rows evaluated")
    labels, arrow = found.scores.labels, "->" if found.directed else "- "
    for i, j, score in pairs:
        print(f"  {labels[i]:>8} {arrow} {labels[j]:<8} {score:.3f}")
    if not pairs and options.top:
        print("  nothing depends on anything")
