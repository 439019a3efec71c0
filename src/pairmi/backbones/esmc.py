"""ESM-C, the protein language model: `EsmcForMaskedLM` of `transformers`."""

from pairmi.backbones.masked_lm import MaskedLM, Settings
from pairmi.backbones.pretrained import read_network
from pairmi.backbones.translation import Translation

RESIDUES = "LAGVSERTIDPKQNFYMHWC"  # in the order of ESM-C's own ids, which are 4..23
TRANSLATION = Translation({residue: 4 + place for place, residue in enumerate(RESIDUES)}, mask=32, before=(0,), after=(2,))


def load(source: str, settings: Settings) -> MaskedLM:
    """A folder or a hub id, such as "biohub/ESMC-300M", as a backbone.

    All models of the family share one vocabulary of 33 tokens, so the tokenizer's files are not needed; of their 64 logit columns only
    the 20 of the standard residues are used.
    """
    return MaskedLM(read_network(source, settings.attention), TRANSLATION, settings)
