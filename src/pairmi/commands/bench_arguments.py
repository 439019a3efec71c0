"""The options of each benchmark."""

from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

from pairmi.commands.arguments import add_engine, amount, fraction, picture, positive, seed, writable


def _outputs(parser: ArgumentParser, figure: str | None = None, records: bool = False) -> None:
    parser.add_argument("--json", type=writable, help="write the records into this file, one a line")
    if figure is not None:
        parser.add_argument("--figure", type=picture, help=f"draw {figure} into this file")
    if records:
        parser.add_argument("--records", type=writable, help="a file of measurements: what it holds is not measured again")


def _model(parser: ArgumentParser, default: str = "sudoku", limit: str = "boards") -> None:
    parser.add_argument("--backbone", default=default, help="an embedded model, an exact world (see 'pairmi rules'), or a weights file")
    parser.add_argument("--limit", type=positive, help=f"how many {limit}")


def _boards(parser: ArgumentParser) -> None:
    _model(parser)
    parser.set_defaults(limit=1000)
    parser.add_argument("--head", help="a head for this backbone; an embedded model has its own")
    parser.add_argument("--rules", nargs="+", metavar="SPEC", help="only these, beside 'sequential'; default: every rule at its defaults")
    parser.add_argument("--verify", action="store_true", help="also with verification")
    parser.add_argument("--batch", type=positive, default=128, help="boards decoded at once; changes the time only")
    parser.add_argument("--split", default="test", choices=("validation", "test"), help="tune on validation, report on test")
    parser.add_argument(
        "--boards", choices=("puzzles", "minimal", "empty", "open"), help="other boards than the benchmark's own; open = 12 givens"
    )
    parser.add_argument("--temperature", type=amount, help="of the draws; 0 = the likeliest symbols; default: 0 for puzzles, else 1")
    parser.add_argument("--accept", type=fraction, default=0.999, help="at temperature 0 with --verify: how sure the conditional must be")
    parser.add_argument("--seed", type=seed, default=0, help="of the draws")
    _outputs(parser, "the frontiers", records=True)
    add_engine(parser)


def _labelled(parser: ArgumentParser) -> None:
    _model(parser, limit="labelled states")
    parser.add_argument("--labels", type=Path, required=True, help="folder that 'pairmi labels' filled")


def add_bench(bench: Callable[[str, str], ArgumentParser]) -> None:
    """Every benchmark with the options that it takes."""
    exact = bench("exact", "what every rule loses in exact worlds, by walking all branches of decoding")
    exact.add_argument("--worlds", nargs="+", metavar="WORLD", help="only these worlds")
    exact.add_argument("--rules", nargs="+", metavar="SPEC", help="only these; default: the whole catalogue, swept")
    exact.add_argument("--verify", action="store_true", help="also with verification")
    _outputs(exact, "the frontiers")
    speed = bench("speed", "what choosing costs beside a pass of the backbone, rule by rule")
    speed.add_argument("--limit", type=positive, help="rows in a batch; default: 256 boards, 2 with --symbols")
    speed.add_argument("--symbols", type=positive, help="another vocabulary than Sudoku's, such as 32768: time in softmaxes, and memory")
    speed.add_argument("--length", type=positive, help="with --symbols or --block: positions of a sequence; default: 128, in blocks 512")
    speed.add_argument("--block", type=positive, help="what a block of so many positions costs instead; default: of 126464 symbols")
    _outputs(speed)
    _boards(bench("sudoku-solve", "rules on the same Sudoku puzzles: quality, passes, rows and time"))
    _boards(bench("sudoku-generate", "the same on empty boards: unconditional generation"))
    head = bench("head", "how well heads and controls know the probed mutual information of test states, and what they cost")
    _labelled(head)
    head.add_argument("--head", nargs="+", default=[], metavar="FILE", help="the heads to compare")
    _outputs(head, "the calibration")
    probe = bench("probe", "what pruning saves, whether its certificates hold, and how fast labelling is")
    _labelled(probe)
    _outputs(probe)
    protein = bench("protein", "generated proteins against a reference, rule by rule")
    _model(protein, "protein", "sequences")
    protein.set_defaults(limit=500)
    protein.add_argument("--head", help="a head for this backbone; an embedded model has its own")
    protein.add_argument("--rules", nargs="+", metavar="SPEC", help="only these; default: the paper's Table 2")
    protein.add_argument("--reference", type=Path, help="FASTA file to compare with; default: sequential samples of the model itself")
    protein.add_argument("--lengths", default="108-125", help="without --reference: of the sequences to generate")
    protein.add_argument("--clusters", type=positive, default=15, help="k of k-means")
    protein.add_argument("--batch", type=positive, default=64, help="sequences decoded at once; changes the time only")
    _outputs(protein, "divergence against passes", records=True)
    contacts = bench("contacts", "how well mutual information finds the residues that touch")
    _model(contacts, "protein", "structures")
    contacts.add_argument("--folder", type=Path, help="PDB files")
    contacts.add_argument("--chain", metavar="SEQUENCE", help="instead: an antibody heavy chain, to be mapped by its regions")
    contacts.add_argument("--blocks", type=positive, default=4, help="a context masks 2 / blocks of a sequence")
    contacts.add_argument("--deals", type=positive, default=2, help="how often the blocks are dealt again")
    contacts.add_argument("--batch", type=positive, default=128, help="sequences evaluated at once")
    _outputs(contacts, "the map")
