"""What the page asks for, as pure functions on the public ones: plain values in, JSON-able values out."""

import math
import time
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Literal, get_args, get_origin, get_type_hints

import torch
from jaxtyping import Int
from torch import Tensor

from pairmi import api, canvases, explain, tuning
from pairmi.commit import Sampling
from pairmi.decoding import iter_decode
from pairmi.info import LARGE
from pairmi.mi.table import TableHead
from pairmi.model import Model
from pairmi.results import Step
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import CHARGES, DRAWS, ESTIMATES, parameters, parse
from pairmi.types import PairmiError, Selector
from pairmi.web.work import Event, Watch, watched

LONGEST = 512  # positions that a page can still show
SHOWN = 24  # candidates of a position, and symbols of an alphabet, that a page still lists
LARGEST = 1e6  # of a number in a rule
GIVENS = (24, 60)  # of a drawn puzzle: digging deeper takes long
DRAWN = 16  # symbols that are tried in a position where an alphabet is too large to try all
PRICED = 8  # sequences that a price on the page rests on: some seconds of a Sudoku
SEARCH = 50_000  # symbols that looking for the only solution may try: some hundredths of a second


def describe(models: Mapping[str, Model]) -> Event:
    """The models and the rules that the page can offer."""
    return {"models": [_model(name, model) for name, model in models.items()], "rules": [_rule(name) for name in CATALOGUE]}


def _model(name: str, model: Model) -> Event:
    return {
        "name": name,
        "length": model.length,
        "symbols": list(model.vocab.symbols) if model.vocab.size <= SHOWN else [],
        "size": model.vocab.size,
        "blanks": model.vocab.blanks,
        "spaced": spaced(model),
        "text": model.vocab.tokenizer is not None,
        "tried": DRAWN if model.vocab.size >= LARGE else model.vocab.size,
        "tables": model.tables is not None,
        "defers": isinstance(model.tables, TableHead) and model.tables.doubt is not None,  # they know what they lose
        "side": side(model),
        "head": model.head is not None,
        "estimates": estimates(model),
        "puzzles": side(model) == 9,
    }


def side(model: Model) -> int | None:
    """The side of the board whose cells the positions are; None = a sequence."""
    square = math.isqrt(model.length or 0)
    return square if model.length and square**2 == model.length and model.task.position(0) == "r1c1" else None


def spaced(model: Model) -> bool:
    """Whether symbols have several letters, so that a canvas is written with spaces between them."""
    return any(len(symbol) != 1 for symbol in model.vocab.symbols)


def estimates(model: Model) -> list[str]:
    """What `mi` can be in a rule for this model, the default first."""
    known = {"head": model.head, "structural": model.graph, "attention": None}
    missing = {name for name, value in known.items() if value is None}
    return sorted((name for name in ESTIMATES if name not in missing), key=lambda name: name != "head")


def _rule(name: str) -> Event:
    kinds = get_type_hints(CATALOGUE[name])
    shown = [
        {
            "name": key,
            "default": default,
            "kind": "mi" if key == "mi" else type(default).__name__,
            "choices": list(CHARGES) if key == "charge" else list(get_args(kinds[key])) if get_origin(kinds[key]) is Literal else [],
        }
        for key, default in parameters(name).items()
    ]
    shown.append({"name": "draw", "default": DRAWS[0], "kind": "str", "choices": list(DRAWS)})  # which every rule takes
    shown += [{"name": name, "default": None, "kind": "float", "choices": []} for name in ("defer", "late")]  # with learnt tables
    about = (CATALOGUE[name].__doc__ or "").splitlines()[0]
    return {"name": name, "about": about, "reference": vars(CATALOGUE[name])["reference"], "parameters": shown}


def read(model: Model, canvas: str) -> Int[Tensor, " L"]:
    """A canvas as tokens, short enough for the page, whatever speaks against it."""
    letters = canvas.split() if spaced(model) else list(canvas.strip())
    if len(letters) > LONGEST:
        raise PairmiError(f"canvas: expected at most {LONGEST} positions, got {len(letters)}; 'pairmi mi' takes longer ones")
    ids = {symbol: n for n, symbol in enumerate(model.vocab.symbols)} | dict.fromkeys(model.vocab.blanks, model.vocab.size)
    for position, letter in enumerate(letters):
        if letter not in ids:
            raise PairmiError(f"canvas: {letter!r} at {model.task.position(position)} is not in the alphabet of {model.name}")
    return torch.tensor([ids[letter] for letter in letters], dtype=torch.long)


def tokens_of(model: Model, text: str) -> Event:
    """What somebody typed as a canvas of the page: the tokens of a text, with spaces between them."""
    known = {*model.vocab.symbols, *model.vocab.blanks}
    if model.vocab.tokenizer is None or all(part in known for part in text.split()):
        return {"canvas": text}
    return {"canvas": written(model, model.vocab.encode(text))}


def written(model: Model, tokens: Int[Tensor, " L"]) -> str:
    """Tokens as the page writes a canvas."""
    return " ".join(model.vocab.letters(tokens)) if spaced(model) else model.vocab.decode(tokens)


def checked(model: Model, canvas: str) -> Int[Tensor, " L"]:
    """A canvas as tokens that the model can fill."""
    return canvases.tokenise(model, read(model, canvas))


def conflict(model: Model, tokens: Int[Tensor, " L"]) -> Event | None:
    """Why nothing completes a canvas, and a smallest set of givens that already shows it."""
    if model.length not in (None, len(tokens)) or model.task.conflict(tokens) is None:
        return None
    culprits = tokens.clone()
    for i in reversed(torch.nonzero(tokens != model.vocab.size)[:, 0].tolist()):  # what can go without solving it is not to blame
        without = culprits.clone()
        without[i] = model.vocab.size
        culprits = without if model.task.conflict(without) is not None else culprits
    return {"message": model.task.conflict(culprits), "positions": torch.nonzero(culprits != model.vocab.size)[:, 0].tolist()}


def selector(model: Model, text: str) -> Selector:
    """A rule from its specification, with numbers that a page may ask for."""
    _, options = parse(text)
    for key, value in options.items():
        try:
            number = float(value)
        except ValueError:
            continue
        if not abs(number) <= LARGEST:
            raise PairmiError(f"rule {text!r}: {key} must be between {-LARGEST:g} and {LARGEST:g}, got {value}")
    if options.get("mi", "probe") not in estimates(model):
        raise PairmiError(f"rule {text!r}: mi must be one of {', '.join(estimates(model))} for model {model.name!r}, got {options['mi']}")
    return api.resolve(text, model)


def decode(model: Model, canvas: str, rule: str, sampling: Sampling, watch: Watch) -> Event:
    """Decode pass by pass, telling of each: what was filled, and why the others waited."""
    tokens, stoppable = checked(model, canvas), watched(model, watch)
    right, wrong, step = solution(model, tokens), None, None
    start = time.thread_time()  # of this worker alone, whatever else the CPU does
    for number, step in enumerate(iter_decode(stoppable, tokens[None], selector(stoppable, rule), sampling), 1):
        wrong = wrong or broken(model, step, right, number)
        watch.tell({"pass": _pass(model, step)})
    assert step is not None  # a checked canvas has something to fill
    return {
        "text": written(model, step.tokens[0]),
        "said": model.vocab.decode(step.tokens[0]),
        "passes": int(step.passes[0]),
        "rows": watch.rows,
        "seconds": time.thread_time() - start,
        "broken": wrong,
        "verdict": "filled" if side(model) is None else "valid" if right is None else "solved",
    }


def price(model: Model, canvas: str, rule: str, seed: int, temperature: float, watch: Watch) -> Event:
    """What a rule loses on this canvas against sequential decoding in its own order, in nats, from a few sequences that are drawn."""
    tokens, stoppable = checked(model, canvas), watched(model, watch)
    watch.total = PRICED * int((tokens == model.vocab.size).sum())
    found = tuning.price(stoppable, tokens, selector(stoppable, rule), seed=seed, sequences=PRICED, temperature=temperature)
    return {"nats": found.nats, "interval": list(found.interval), "passes": found.passes, "sequences": PRICED}


def solution(model: Model, tokens: Int[Tensor, " 81"] | Int[Tensor, " L"]) -> Int[Tensor, " L"] | None:
    """The only completion of a Sudoku; None where there are several or none, or where a short search does not tell."""
    if side(model) != 9 or find_spec("numba") is None:
        return None
    from pairmi.tasks.sudoku.solver import only_solution

    found = only_solution(tokens.numpy(), SEARCH)
    return None if found is None else torch.from_numpy(found)


def compile_solver() -> Event:
    """Draw a puzzle and solve it, so that whoever comes first need not wait until both are compiled."""
    from pairmi.tasks.sudoku.puzzles import unique_puzzles
    from pairmi.tasks.sudoku.solver import only_solution

    only_solution(unique_puzzles(1, 0, GIVENS).canvases[0].numpy(), SEARCH)
    return {}


def broken(model: Model, step: Step, right: Int[Tensor, " L"] | None, number: int) -> Event | None:
    """Where a pass went wrong: the positions, and a sentence."""
    after, committed = step.tokens[0], step.committed[0]
    if right is not None:
        places = torch.nonzero(committed & (after != right))[:, 0].tolist()
        name = model.task.position
        said = [f"{name(i)} is {model.vocab.symbols[int(right[i])]}, not {model.vocab.symbols[int(after[i])]}" for i in places[:1]]
    else:
        complaint = model.task.conflict(after)
        places, said = torch.nonzero(committed)[:, 0].tolist() if complaint else [], [complaint] if complaint else []
    return {"pass": number, "positions": places, "message": said[0]} if said else None


def puzzle(givens: int, seed: int) -> Event:
    """A random puzzle with one solution."""
    if find_spec("numba") is None:
        raise PairmiError("puzzles need a solver: pip install 'pairmi[sudoku]'")
    from pairmi.tasks.sudoku.puzzles import unique_puzzles
    from pairmi.tasks.sudoku.rules import to_text

    return {"canvas": to_text(unique_puzzles(1, seed, (givens, givens)).canvases[0])}


def _pass(model: Model, step: Step) -> Event:
    """What was filled, why the others waited, and the canvas afterwards."""
    words, blockers = explain.in_words(model, step, 0), step.waiting.blocker[0].tolist()
    return {
        "filled": words.filled,
        "waiting": {i: {"why": why, "on": blockers[i] if blockers[i] >= 0 else None} for i, why in words.waiting.items()},
        "text": written(model, step.tokens[0]),
        "passes": int(step.passes[0]),
    }
