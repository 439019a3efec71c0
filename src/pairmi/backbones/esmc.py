"""ESM-C, the protein language model: `EsmcForMaskedLM` of `transformers`, pretrained or new."""

from dataclasses import dataclass

from pairmi.backbones.masked_lm import MaskedLM, Settings
from pairmi.backbones.pretrained import library
from pairmi.backbones.translation import Translation
from pairmi.types import PairmiError

RESIDUES = "LAGVSERTIDPKQNFYMHWC"  # in the order of ESM-C's own ids, which are 4..23
# All models of the family share one vocabulary of 33 tokens, so no tokenizer's files are needed; their other logit columns are not used.
TRANSLATION = Translation({residue: 4 + place for place, residue in enumerate(RESIDUES)}, mask=32, before=(0,), after=(2,))


@dataclass(frozen=True)
class Shape:
    """The size of a new network; the defaults are those of our protein model."""

    width: int = 192
    depth: int = 6
    heads: int = 6
    longest: int = 1022  # residues
    architecture: str = "esmc"  # tells the file of its weights from that of a `Transformer`

    def __post_init__(self) -> None:
        if min(self.width, self.depth, self.heads, self.longest) < 1 or self.width % (2 * self.heads):
            raise PairmiError(f"esmc.Shape: sizes must be >= 1 and width an even multiple of heads, got {self}")


def build(shape: Shape, settings: Settings | None = None) -> MaskedLM:
    """A network of this shape with random weights."""
    transformers, settings = library("esmc"), settings or Settings()
    config = transformers.EsmcConfig(
        hidden_size=shape.width,
        intermediate_size=-(-8 * shape.width // (3 * 256)) * 256,  # as in the published models: 8/3 of the width, up to a multiple of 256
        num_hidden_layers=shape.depth,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        head_dim=shape.width // shape.heads,
        max_position_embeddings=shape.longest + TRANSLATION.added,
    )
    kind = "eager" if settings.attention else "sdpa"
    return MaskedLM(transformers.AutoModelForMaskedLM.from_config(config, attn_implementation=kind), TRANSLATION, settings)
