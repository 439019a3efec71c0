"""Strings become code here and nowhere else: names of models, specifications of rules."""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pairmi.backbones import antiberty, esmc, huggingface
from pairmi.backbones.checkpoint import fingerprint, load_tensors
from pairmi.backbones.masked_lm import MaskedLM, Settings
from pairmi.backbones.pretrained import read_kind, readable
from pairmi.backbones.tabular import Tabular
from pairmi.backbones.transformer import Transformer, TransformerConfig
from pairmi.mi.head import LowRankConfig, LowRankHead
from pairmi.mi.pair_mlp import PairMLPConfig, PairMLPHead
from pairmi.mi.probe import Form, Probe
from pairmi.mi.proxies import Attended, RandomMI, Shuffled, Structural
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.selectors.charge import Calibration
from pairmi.selectors.one_at_a_time import OneAtATime
from pairmi.tasks.sudoku import rules as sudoku
from pairmi.tasks.tables import WORLDS
from pairmi.types import Backbone, Limited, Objecting, PairmiError, PairwiseMI, Prediction, Selector, Tokens, Vocab


def _weights(name: str) -> Path:
    """Where the package keeps weights."""
    return Path(str(files("pairmi") / "weights" / f"{name}.safetensors"))


EMBEDDED = tuple(name for name in ("sudoku", "sudoku-small", "protein") if _weights(name).is_file())  # whose weights are in the package
HEADED = tuple(name for name in (*EMBEDDED, "antiberty") if _weights(f"{name}-head").is_file())  # for which the package has a head
COMMITS = ("all", "one")  # how much of a rule's choice a pass fills
ESTIMATES = ("probe", "head", "shuffled", "random", "structural", "attention")

Head = LowRankHead | PairMLPHead
HEADS: dict[str, tuple[type[Head], type[LowRankConfig] | type[PairMLPConfig]]] = {
    "low-rank": (LowRankHead, LowRankConfig),
    "pair-mlp": (PairMLPHead, PairMLPConfig),
}


@dataclass(frozen=True)
class Model:
    """A backbone with what else is known of it; itself a backbone."""

    backbone: Backbone
    name: str = "custom"
    graph: Float[Tensor, "L L"] | None = None  # the structure that a domain expert would expect, for the control `mi=structural`
    conflict: Callable[[Tensor], str | None] | None = None
    place: Callable[[int], str] = str  # what people call a position
    search: Callable[[Tensor], tuple[bool, str] | None] | None = None  # can it be completed, and what to say of it; None = nothing to say
    head: PairwiseMI | None = None  # a learned estimate that was made for this backbone
    calibration: Calibration | None = None  # what `charge=calibrated` charges

    @property
    def vocab(self) -> Vocab:
        """The alphabet."""
        return self.backbone.vocab

    @property
    def length(self) -> int | None:
        """The only length it takes; None = any."""
        return self.backbone.length

    @property
    def longest(self) -> int | None:
        """The most positions it takes; None = no limit."""
        return self.backbone.longest if isinstance(self.backbone, Limited) else None

    def validate(self, canvas: Int[Tensor, " L"]) -> str | None:
        """Why nothing can complete this canvas; None = nothing speaks against it."""
        if self.conflict is not None:
            return self.conflict(canvas)
        return self.backbone.validate(canvas) if isinstance(self.backbone, Objecting) else None

    def __call__(self, tokens: Tokens) -> Prediction:
        """One pass, without gradients."""
        with torch.inference_mode():
            return self.backbone(tokens)


def _closest(name: str, known: Iterable[str]) -> str:
    """A suggestion for a name that is not known."""
    known = list(known)
    close = difflib.get_close_matches(name, known, 1, 0.5)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


def load(
    name: str,
    *,
    attention: bool = False,
    device: str | None = None,
    head: str | None = None,
    layer: int | None = None,
    precision: str | None = None,
) -> Model:
    """A model by its name: embedded weights, an exact world, a safetensors file that pairmi wrote, or a pretrained masked language model.

    The latter is "antiberty", a folder, or a hub id such as "biohub/ESMC-300M"; it runs on a GPU where there is one. `layer` is the one
    whose hidden states are reported, `precision` that of its matrix products (float32 | float16 | bfloat16). `attention` makes a
    transformer report its attention weights, which the control `mi=attention` needs. `head` is the learned estimate behind `mi=head`:
    the name of the model that a head in the package is for, or a file; an embedded model brings its own, unless a `layer` is asked for.
    """
    if name in WORLDS:
        world = WORLDS[name]()
        table = Tabular(world.support, world.weights, world.symbols)
        model = Model(table, name, sudoku.peers(2), place=partial(sudoku.cell_name, side=4)) if name == "sudoku4" else Model(table, name)
        return model if head is None else with_head(model, head)
    if name not in EMBEDDED and (name == "antiberty" or readable(name)):
        model = Model(_masked_lm(name, Settings(layer, attention, device, precision)), name)
        return model if head is None else with_head(model, head)
    file = _weights(name) if name in EMBEDDED else Path(name)
    if name not in EMBEDDED and not file.is_file():
        raise PairmiError(f"load: no model or file {name!r}; {_closest(name, (*EMBEDDED, *WORLDS, 'antiberty'))}")
    backbone = load_own(file, Settings(layer, attention, device, precision))
    is_sudoku = backbone.length == 81 and "".join(backbone.vocab.symbols) == "123456789"
    model = Model(backbone, name, sudoku.peers(), sudoku.conflict, sudoku.cell_name, _search_sudoku) if is_sudoku else Model(backbone, name)
    own = name if name in EMBEDDED and name in HEADED and layer is None else None  # who asks for a layer gets that, not what a head reads
    return model if head is None and own is None else with_head(model, head or cast(str, own))


def _masked_lm(name: str, settings: Settings) -> MaskedLM:
    """A pretrained masked language model through the adapter of its family."""
    if name == "antiberty":
        return antiberty.load(antiberty.folder(), settings)
    return esmc.load(name, settings) if read_kind(name) == "esmc" else huggingface.load(name, settings)


def identify(model: Backbone) -> str:
    """The fingerprint of a backbone's weights, by which heads and labels know it."""
    backbone = model.backbone if isinstance(model, Model) else model
    if not isinstance(backbone, nn.Module):
        raise PairmiError(f"{type(backbone).__name__}: has no weights; heads and labels are for trained backbones")
    return fingerprint(backbone.state_dict())


def with_head(model: Model, name: str) -> Model:
    """The model with a learned estimate, reporting the hidden states that this one reads; refuses one made for other weights."""
    file = _weights(f"{name}-head") if name in HEADED else Path(name)
    tensors, about = load_tensors(file)
    if about.get("kind") != "head" or about.get("head") not in HEADS:
        raise PairmiError(
            f"head: {file} holds no head (its description says kind={about.get('kind')!r}); train one with 'pairmi train head'"
        )
    if about["backbone"] != identify(model):
        raise PairmiError(
            f"head: {file} was made for weights {about['backbone']}, but model {model.name!r} has {identify(model)}; "
            "load the backbone that it was trained on, or train a head for this one"
        )
    kind, config = HEADS[about["head"]]
    head: Any = kind(config(**about["config"]))  # type: ignore[arg-type]
    if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != {n: tuple(t.shape) for n, t in head.state_dict().items()}:
        raise PairmiError(f"head: the tensors in {file} do not fit its own description; fetch or train it again")
    head.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    backbone = cast(Transformer | MaskedLM, model.backbone)
    place = backbone.position.device if isinstance(backbone, Transformer) else "cpu"  # where its predictions live
    charge = Calibration.from_about(about["calibration"]) if "calibration" in about else model.calibration
    own = head.requires_grad_(False).eval().to(place)
    return replace(model, backbone=backbone.reporting(about["layers"]), head=own, calibration=charge)


def _search_sudoku(canvas: Int[Tensor, " 81"]) -> tuple[bool, str] | None:
    """What a solver, where its extra is installed, says of a puzzle that has not just one solution."""
    if find_spec("numba") is None:
        return None
    from pairmi.tasks.sudoku.checking import Verdict, status

    found = status(canvas)
    return None if found.unique else (found.verdict is Verdict.SEVERAL, found.message)


def load_own(file: Path, settings: Settings) -> Transformer | MaskedLM:
    """A network that pairmi trained, frozen, from a weights file or a training checkpoint."""
    tensors, about = load_tensors(file)
    shape = about.get("shape") or about.get("job", {}).get("shape")
    if not isinstance(shape, dict):
        raise PairmiError(f"load: {file} holds no network (no 'shape' in its description)")
    ours = shape.get("architecture") != "esmc"
    network = (
        Transformer(TransformerConfig(**shape), settings.attention, settings.precision or "float32")
        if ours
        else esmc.build(esmc.Shape(**shape), settings)
    )
    learnt = {name: tensor for name, tensor in tensors.items() if name.startswith("model.")} or tensors  # of a checkpoint: the model alone
    weights = {name.removeprefix("model."): tensor.float() for name, tensor in learnt.items()}
    expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    if {name: tuple(tensor.shape) for name, tensor in weights.items()} != expected:
        raise PairmiError(f"load: the tensors in {file} do not fit its own description; fetch or train it again")
    network.load_state_dict(weights)
    network.requires_grad_(False).eval()
    if isinstance(network, MaskedLM):  # it has its layer and its device from the settings
        return network
    return (network if settings.layer is None else network.reporting([settings.layer])).to(settings.device or "cpu")


def estimate(name: str, model: Model, form: Form = "joint", floor: float = 0.01) -> PairwiseMI:
    """An estimate of mutual information by its name."""
    probe = Probe(form, floor)
    if name == "structural" and model.graph is None:
        raise PairmiError(f"mi=structural: no structure is known for model {model.name!r}; choose another mi")
    if name == "head" and model.head is None:
        raise PairmiError(f"mi=head: model {model.name!r} has no head; load(..., head=FILE), or choose another mi")
    known: dict[str, Callable[[], PairwiseMI]] = {
        "probe": lambda: probe,
        "head": lambda: cast(PairwiseMI, model.head),
        "shuffled": lambda: Shuffled(model.head or probe),
        "random": RandomMI,
        "structural": lambda: Structural(cast(Tensor, model.graph)),
        "attention": Attended,
    }
    if name not in known:
        raise PairmiError(f"mi={name}: unknown estimate; {_closest(name, known)}")
    return known[name]()


def parse(text: str) -> tuple[str, dict[str, str]]:
    """Split "name:key=value,key=value"."""
    name, _, tail = text.partition(":")
    options: dict[str, str] = {}
    for part in filter(None, tail.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not value:
            raise PairmiError(f"rule {text!r}: expected key=value after the colon, got {part!r}")
        if key in options:
            raise PairmiError(f"rule {text!r}: {key} is given twice")
        options[key] = value
    return name, options


def rule(text: str, model: Model) -> Selector:
    """A decoding rule from its specification, such as "mi-guided:mi=probe,budget=0.3"; the bare name has good defaults.

    Rules that look at pairs take `mi` (the model's head, if it has one, else the probe), and `form` and `floor` for the probe. Every rule
    takes `commit`: all that it chose, or one position a pass, in its order.
    """
    name, options = parse(text)
    if name not in CATALOGUE:
        raise PairmiError(f"rule {name!r} is unknown; {_closest(name, CATALOGUE)}")
    kinds, commit = parameters(name), options.pop("commit", COMMITS[0])
    if commit not in COMMITS:
        raise PairmiError(f"rule {text!r}: commit must be one of {', '.join(COMMITS)}, got {commit!r}")
    values: dict[str, Any] = {}
    if "mi" in kinds:
        default = "head" if model.head is not None and not {"form", "floor"} & options.keys() else "probe"
        probing = {"form": options.pop("form", "joint"), "floor": _number(text, "floor", options.pop("floor", "0.01"), float)}
        values["mi"] = estimate(options.pop("mi", default), model, **probing)
    if "charge" in kinds:
        values["charge"] = _charge(text, options.pop("charge", "pairwise"), model)
    for key, value in options.items():
        if key not in kinds:
            raise PairmiError(f"rule {text!r}: {name} has no parameter {key!r}; {_closest(key, (*kinds, 'commit'))}")
        kind = type(kinds[key])
        values[key] = value if kind is str else _number(text, key, value, kind)
    made = cast(Selector, CATALOGUE[name](**values))
    return OneAtATime(made) if commit == "one" else made


def _charge(text: str, value: str, model: Model) -> Calibration | None:
    """The charge of a rule by its name; None = pairwise."""
    if value not in ("pairwise", "calibrated"):
        raise PairmiError(f"rule {text!r}: charge must be pairwise or calibrated, got {value!r}")
    if value == "calibrated" and model.calibration is None:
        raise PairmiError(f"rule {text!r}: model {model.name!r} has no calibration; make one with 'pairmi tune' or pairmi.calibrate")
    return model.calibration if value == "calibrated" else None


def parameters(name: str) -> dict[str, Any]:
    """The parameters of a rule with their defaults."""
    found = {field.name: field.default for field in fields(CATALOGUE[name])}
    return {key: "probe" if default is MISSING else "pairwise" if default is None else default for key, default in found.items()}


def looks_at_pairs(text: str) -> bool:
    """Whether the rule of a specification reads mutual information."""
    return "mi" in parameters(parse(text)[0])


def _number(text: str, key: str, value: str, kind: type) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise PairmiError(f"rule {text!r}: {key} must be {'a whole number' if kind is int else 'a number'}, got {value!r}") from None
