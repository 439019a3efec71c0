"""RXNMapper, a masked language model of chemical reactions as SMILES (Schwaller et al. 2021), from the package `rxnmapper`."""

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pairmi.backbones.masked_lm import MaskedLM, Settings
from pairmi.backbones.pretrained import read_network
from pairmi.backbones.translation import Translation
from pairmi.types import PairmiError

NAME, BLANK, MASK = "albert_heads_8_uspto_all_1310k", "_", "[MASK]"
# atoms in brackets, those of two letters first, bonds, branches, rings (Schwaller et al. 2018); whatever else there is, letter by letter
PATTERN = re.compile(r"\[[^\]]+\]|Br|Cl|>>|%[0-9]{2}|.", re.DOTALL)


@dataclass(frozen=True)
class Smiles:
    """Cuts SMILES into atoms, bonds, branches and rings; unknown is _ or [MASK]."""

    def encode(self, text: str) -> list[str]:
        """The symbols of a text, all of it."""
        return [BLANK if symbol == MASK else symbol for symbol in PATTERN.findall(text)]

    def decode(self, symbols: list[str]) -> str:
        """The text of symbols and blanks."""
        return "".join(MASK if symbol == BLANK else symbol for symbol in symbols)


def folder() -> Path:
    """Where the package keeps its model; it is not imported for that, its files are all that is wanted."""
    found = find_spec("rxnmapper")
    if found is None or not found.submodule_search_locations:
        raise PairmiError("load: 'rxnmapper' needs the package that holds its weights; pip install --no-deps rxnmapper==0.4.3")
    return Path(found.submodule_search_locations[0]) / "models" / "transformers" / NAME


def load(model: Path, settings: Settings) -> MaskedLM:
    """RXNMapper as a backbone, up to 510 symbols of reactants>>products."""
    listed = model / "vocab.txt"
    if not listed.is_file():
        raise PairmiError(f"load: no file {listed}; install the version that is known to work: pip install --no-deps rxnmapper==0.4.3")
    ids = {token: i for i, token in enumerate(listed.read_text().split())}
    special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", MASK}
    if lacking := sorted((special | {">>"}) - set(ids)):
        raise PairmiError(f"load: {listed} lacks {lacking[0]}; pip install --no-deps rxnmapper==0.4.3")
    symbols = {token: i for token, i in ids.items() if token not in special and not token.startswith("[unused")}
    translation = Translation(symbols, ids[MASK], (ids["[CLS]"],), (ids["[SEP]"],), Smiles())
    return MaskedLM(read_network(str(model), settings.attention), translation, settings)
