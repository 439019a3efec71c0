"""Models by their names: embedded weights, exact worlds, files, pretrained masked language models; and heads for them."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from pairmi.backbones import esmc, huggingface, packaged, proteinmpnn
from pairmi.backbones.checkpoint import learnt, load_tensors, save_tensors
from pairmi.backbones.families import family_of
from pairmi.backbones.identity import identify
from pairmi.backbones.masked_lm import MaskedLM, Settings, chosen_device
from pairmi.backbones.packaged import PACKAGED
from pairmi.backbones.pretrained import file_of, read_kind, read_network, readable
from pairmi.backbones.tabular import Tabular
from pairmi.backbones.transformer import Transformer, TransformerConfig
from pairmi.mi.embedded_tables import EmbeddedConfig, EmbeddedTables
from pairmi.mi.heads import UNTRAINED, Embedded, Layered, build, fill, related, reporting
from pairmi.mi.table import TableConfig, TableHead
from pairmi.model import Model, device_of
from pairmi.selectors.charge import Calibration
from pairmi.tasks.catalogue import TASKS
from pairmi.tasks.protein.residues import speaks_protein
from pairmi.tasks.protein.scaffold import read_scaffold
from pairmi.tasks.protein.task import Design
from pairmi.tasks.tables import WORLDS, InWorld
from pairmi.types import Charge, PairmiError


def _weights(name: str) -> Path:
    """Where the package keeps weights."""
    return Path(str(files("pairmi") / "weights" / f"{name}.safetensors"))


EMBEDDED = tuple(name for name in ("sudoku", "protein") if _weights(name).is_file())  # whose weights are in the package
HEADED = tuple(name for name in (*EMBEDDED, "antiberty", "proteinmpnn") if _weights(f"{name}-head").is_file())  # that have a head here
HEAD_FILE = "head.safetensors"  # in a folder, or in a repository on the model hub


def closest(name: str, known: Iterable[str]) -> str:
    """A suggestion for a name that is not known."""
    known = list(known)
    close = difflib.get_close_matches(name, known, 1, 0.5)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


def load(
    name: str | Path,
    *,
    attention: bool = False,
    device: str | None = None,
    head: str | Path | None = None,
    tables: str | Path | None = None,
    layer: int | None = None,
    precision: str | None = None,
    structure: str | Path | None = None,
    chain: str | None = None,
    tokenizer: Any = None,
    allow_code: bool = False,
    revision: str | None = None,
) -> Model:
    """A model by its name: embedded weights, an exact world, a safetensors file that pairmi wrote, or a pretrained masked language model.

    The latter is "antiberty", "albert-zh", "rxnmapper", a folder, or a hub id such as "biohub/ESMC-300M-hf"; a GPU is used if there is one.
    `layer` is the one whose hidden states are reported, `precision` that of its matrix products (float32 | float16 | bfloat16). `attention`
    makes a transformer report its attention weights, which the control `mi=attention` needs. `head` is the learned estimate behind
    `mi=head`: the name of the model that a head in the package is for, a file, a folder (such as `pairmi fit` writes) or a hub id; an
    embedded model brings its own, unless a `layer` is asked for. So do `tables`, the file of a table head, which `draw=coupled` draws by.
    "proteinmpnn" needs the PDB file of a `structure`, of which it takes all protein chains or those named in `chain`, such as "A,B".
    `tokenizer` is another than the model's own files say: an object of `transformers`, a folder, or the name of a class. A model that
    brings its own Python code (LLaDA, Dream, MDLM) runs it only with `allow_code`, from a folder or at a `revision` (a commit).
    """
    if not isinstance(name, str | Path):
        raise PairmiError(f"load: expected the name of a model or a file, got {type(name).__name__}; your own backbone is a model as it is")
    name = str(name)
    settings = Settings(layer, attention, device, precision)
    if (structure is not None or chain is not None) and name != "proteinmpnn":
        raise PairmiError(f"load: {name!r} takes no structure= or chain=; they are for 'proteinmpnn'")
    if name == "proteinmpnn":
        model = _designer(structure, chain, settings)
    elif name in WORLDS:
        world = WORLDS[name]()
        table = Tabular(world.support, world.weights, world.symbols).to(chosen_device(device or "cpu"))
        model = Model(table, name, InWorld(world, TASKS.get(name, TASKS["sequences"])))
    elif name not in EMBEDDED and (name in PACKAGED or readable(name)):
        pretrained = _masked_lm(name, settings, tokenizer, allow_code, revision)
        task = TASKS["reaction" if name == "rxnmapper" else "protein" if speaks_protein(pretrained.vocab) else "sequences"]
        model = Model(pretrained, name, task, longest=pretrained.longest)
    else:
        model = _own(name, settings)
        if head is None and name in EMBEDDED and name in HEADED and layer is None:  # who asks for a layer gets that, not what a head reads
            head = name
            tables = tables or (str(_weights(f"{name}-tables")) if _weights(f"{name}-tables").is_file() else None)
    model = model if head is None else with_head(model, head)
    return model if tables is None else with_tables(model, Path(tables))


def _designer(structure: str | Path | None, chain: str | None, settings: Settings) -> Model:
    """ProteinMPNN for a structure."""
    if structure is None:
        raise PairmiError("load: 'proteinmpnn' needs structure=FILE, a PDB file with the backbone atoms")
    scaffold = read_scaffold(Path(structure), chain)
    network = proteinmpnn.load(settings, scaffold.atoms, scaffold.chains, scaffold.index)
    return Model(network, "proteinmpnn", Design(scaffold))


def _masked_lm(name: str, settings: Settings, tokenizer: Any, allow_code: bool, revision: str | None) -> MaskedLM:
    """A pretrained masked language model through the adapter of its family."""
    if name in PACKAGED:
        return packaged.load(name, settings)
    kind = read_kind(name, allow_code, revision)
    if kind == "esmc":
        return MaskedLM(read_network(name, settings.attention, revision=revision), esmc.TRANSLATION, settings)
    return huggingface.load(name, settings, family_of(kind, name), tokenizer, allow_code, revision)


def _own(name: str, settings: Settings) -> Model:
    """Embedded weights, or a file that pairmi wrote; its description names the task."""
    file = _weights(name) if name in EMBEDDED else Path(name)
    if name not in EMBEDDED and not file.is_file():
        raise PairmiError(f"load: no model or file {name!r}; {closest(name, (*EMBEDDED, *WORLDS, *PACKAGED, 'proteinmpnn'))}")
    tensors, about = load_tensors(file)
    about = about.get("job", about)  # a training checkpoint describes the job inside
    shape = about.get("shape")
    if not isinstance(shape, dict):
        raise PairmiError(f"load: {file} holds no network (no 'shape' in its description)")
    backbone: Transformer | MaskedLM
    if shape.get("architecture") == "esmc":
        backbone = esmc.build(esmc.Shape(**shape), settings)
    else:
        backbone = Transformer(TransformerConfig(**shape), settings.attention, settings.precision or "float32")
        backbone.to(chosen_device(settings.device or "cpu"))
        backbone = backbone if settings.layer is None else backbone.reporting([settings.layer])
    fill(backbone, learnt(tensors), f"load: the tensors in {file}")
    task = about.get("corpus", {}).get("name", "protein" if speaks_protein(backbone.vocab) else "sequences")
    if task not in TASKS:
        raise PairmiError(f"load: {file} was trained on {task!r}, of which nothing is known here; {closest(str(task), TASKS)}")
    return Model(backbone, name, TASKS[task], longest=backbone.longest if isinstance(backbone, MaskedLM) else None)


def head_file(name: str | Path) -> Path:
    """Where a head is: in the package, a file, in a folder, or on the hub (owner/name, owner/name@revision)."""
    return _weights(f"{name}-head") if name in HEADED else file_of(name, HEAD_FILE, "head")


def with_head(model: Model, name: str | Path) -> Model:
    """The model with a learned estimate, reporting the hidden states that this one reads; refuses one made for other weights."""
    file = head_file(name)
    tensors, about = load_tensors(file)
    head = None if about.get("head") == UNTRAINED else related(build(about, tensors, file).to(device_of(model)), model)
    _check_backbone("head", file, about, model)
    charge = Calibration.from_about(about["calibration"]) if "calibration" in about else model.calibration
    rule = about.get("rule", {}).get("rule", model.rule)
    backbone = model.backbone if head is None else reporting(model.backbone, about["layers"])
    read = model.backbone.layers if isinstance(model.backbone, Transformer) else ()
    tables = model.tables if head is None or list(read) == list(about["layers"]) else None  # which read what the head before reported
    return replace(model, backbone=backbone, head=head, calibration=charge, residuals={}, rule=rule, tables=tables)


def equip(file: Path, out: Path, charge: Charge | None, rule: Mapping[str, Any]) -> None:
    """Write a head again with a calibration (None = without) and the rule that it was tuned to: a specification, with its evidence."""
    tensors, about = load_tensors(file)
    if about.get("kind") != "head" or not isinstance(rule.get("rule"), str):
        raise PairmiError(f"head: expected a head and a specification under 'rule', got {file} and {sorted(rule)}")
    about = {name: value for name, value in about.items() if name != "calibration"} | {"rule": dict(rule)}
    save_tensors(out, tensors, about if charge is None else about | {"calibration": charge.about()})


def with_tables(model: Model, file: Path) -> Model:
    """The model with learnt tables; refuses those made for other weights, or that read other layers than its head."""
    tensors, about = load_tensors(file)
    if about.get("kind") != TableHead.kind:
        raise PairmiError(f"tables: {file} holds no tables (kind={about.get('kind')!r}); train them with 'pairmi train tables'")
    _check_backbone("tables", file, about, model)
    backbone = model.backbone
    if model.head is not None and isinstance(backbone, Layered) and list(backbone.layers) != about["layers"]:
        raise PairmiError(
            f"tables: {file} read layers {about['layers']}, the head of model {model.name!r} reads {list(backbone.layers)}; "
            "train both on the same layers"
        )
    head: TableHead | EmbeddedTables
    if about.get("head") == EmbeddedTables.kind:
        shape = EmbeddedConfig(**about["config"])
        head = EmbeddedTables(shape, None if shape.learnt or not isinstance(backbone, Embedded) else backbone.embeddings)
    else:
        head = TableHead(TableConfig(**about["config"]))
    fill(head, tensors, f"tables: the tensors in {file}")
    left = {"coupled": Calibration.from_about(about["calibration"])} if "calibration" in about else {}
    residuals = {way: charge for way, charge in model.residuals.items() if way != "coupled"} | left
    return replace(model, backbone=reporting(backbone, about["layers"]), tables=head.to(device_of(model)), residuals=residuals)


def _check_backbone(what: str, file: Path, about: dict[str, Any], model: Model) -> None:
    if about["backbone"] != identify(model):
        raise PairmiError(
            f"{what}: {file} was made for weights {about['backbone']}, but model {model.name!r} has {identify(model)}; "
            f"load the backbone that it was trained on, or train {'a head' if what == 'head' else what} for this one"
        )
