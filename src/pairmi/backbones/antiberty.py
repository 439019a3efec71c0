"""AntiBERTy, a masked language model of antibody variable domains (Ruffolo, Gray, Sulam 2021), from the package `antiberty`."""

from importlib.util import find_spec
from pathlib import Path

from pairmi.backbones.masked_lm import MaskedLM, Settings
from pairmi.backbones.pretrained import read_network
from pairmi.backbones.translation import RESIDUES, Translation
from pairmi.types import PairmiError


def folder() -> Path:
    """Where the package keeps its models; it is not imported for that, its files are all that is wanted."""
    found = find_spec("antiberty")
    if found is None or not found.submodule_search_locations:
        raise PairmiError("load: 'antiberty' needs the package that holds its weights; pip install 'pairmi[antibody]'")
    return Path(found.submodule_search_locations[0]) / "trained_models"


def load(models: Path, settings: Settings) -> MaskedLM:
    """AntiBERTy as a backbone, up to 510 residues.

    Species, chain and grafting are outputs of the original, read from its first token, and no inputs: nothing conditions on them, and
    their heads are left out. Heavy and light chains go in alike; the model tells them apart by what is given.
    """
    listed = models / "vocab.txt"
    if not listed.is_file():
        raise PairmiError(f"load: no file {listed}; install the version that is known to work: pip install antiberty==0.1.3")
    ids = {token: i for i, token in enumerate(listed.read_text().split())}
    expected = {*RESIDUES, "[CLS]", "[SEP]", "[MASK]"}
    if not expected <= set(ids):
        raise PairmiError(f"load: {listed} lacks {sorted(expected - set(ids))[0]}; pip install antiberty==0.1.3")
    translation = Translation({residue: ids[residue] for residue in RESIDUES}, ids["[MASK]"], (ids["[CLS]"],), (ids["[SEP]"],))
    return MaskedLM(read_network(str(models / "AntiBERTy_md_smooth"), settings.attention), translation, settings)
