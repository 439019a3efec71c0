"""States of one model over many structures: of each shard those of one structure, with the same weights for all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch

from pairmi.loading import load
from pairmi.model import Model
from pairmi.store import Labels
from pairmi.tasks.protein.fasta import Record
from pairmi.tasks.protein.scaffold import Scaffold
from pairmi.tasks.protein.task import Design
from pairmi.training.states import ProteinStates, State, family_name, short_hash
from pairmi.types import PairmiError

GENERATING = 0.8  # the share of states that rules visit when they design; the rest are native sequences under random masks
EACH = 4  # states from one design


def scaffold_of(model: Model) -> Scaffold:
    """The structure that a model designs for."""
    return cast(Design, model.task).scaffold


def load_structures(folder: Path) -> dict[str, Model]:
    """ProteinMPNN for each PDB file of a folder, under the name of the family that its states have in labels."""
    files = sorted(folder.glob("*.pdb"))
    if not files:
        raise PairmiError(f"structures: no PDB files in {folder}; expected *.pdb")
    return {family_name(file.stem): load("proteinmpnn", structure=file) for file in files}


@dataclass(frozen=True)
class StructureStates:
    """Shards take the structures in turn; all states of a structure are one family, so that parts are split by structure."""

    models: Sequence[Model]

    def about(self) -> dict[str, Any]:
        """What they depend on."""
        each = {scaffold.name: short_hash(scaffold.atoms.tobytes()) for scaffold in map(scaffold_of, self.models)}
        return {"name": "structures", "structures": each, "generating": GENERATING, "each": EACH}

    def model_of(self, shard: int) -> Model:
        """Whose states a shard has."""
        return self.models[shard % len(self.models)]

    def draw(self, model: Model, seed: int, shard: int, count: int) -> list[State]:
        """What rules visit when they design for the structure of this shard, and its native sequence under masks."""
        scaffold = scaffold_of(model)
        native = Record(scaffold.name, "", scaffold.text)
        states = ProteinStates([native], GENERATING, EACH).draw(model, seed, shard, count)
        return [replace(state, grid=family_name(scaffold.name)) for state in states]


def without(labels: Labels, names: Sequence[str], models: Mapping[str, Model]) -> tuple[Labels, Labels | None]:
    """Labels of all structures but those named, and of these; None if none is named."""
    unknown = [name for name in names if family_name(name) not in models]
    if unknown:
        raise PairmiError(f"train head: --leave-out {' '.join(unknown)}: no such structure; give --structures, and names without .pdb")
    if not names:
        return labels, None
    left = torch.tensor([grid in set(map(family_name, names)) for grid in labels.grid])
    train, held_out = (labels.pick(torch.nonzero(some)[:, 0]) for some in (~left, left))
    return train, held_out
