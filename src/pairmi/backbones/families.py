"""What the files of a masked model do not tell: the facts of the families of text models, as one table."""

from dataclasses import dataclass

from pairmi.types import PairmiError


@dataclass(frozen=True)
class Family:
    """How a network of one kind is loaded, called and read; the defaults are those of every masked language model of `transformers`."""

    loader: str = "AutoModelForMaskedLM"  # the class of `transformers` that finds its network
    mask: int | None = None  # where neither the tokenizer nor the configuration says it
    shift: int = 0  # position i is predicted by the output at i - shift
    generates: bool = False  # a diffusion model of text: special tokens, such as the end, are symbols, and none are put around a canvas
    timed: bool = False  # wants a time step, which changes nothing
    output: str | None = None  # the last linear map, where the network does not tell
    tokenizer: str | None = None  # of another model, where it has none of its own


MASKED_LM = Family()
FAMILIES = {
    "llada": Family("AutoModel", mask=126336, generates=True),  # Nie et al. 2025
    "Dream": Family("AutoModel", mask=151666, shift=1, generates=True),  # Ye et al. 2025: made from an autoregressive model
    "mdlm": Family(mask=50257, generates=True, timed=True, output="backbone.output_layer.linear", tokenizer="gpt2"),  # Sahoo et al. 2024
}
REFUSED = {
    "diffusion_gemma": "it has no mask token: unknown positions hold random symbols, so that none is known or unknown",
}


def family_of(kind: str, source: str) -> Family:
    """The facts of an architecture by its name in the configuration."""
    if kind in REFUSED:
        raise PairmiError(f"load: {source} is a {kind}, which cannot be probed or decoded here: {REFUSED[kind]}")
    return FAMILIES.get(kind, MASKED_LM)
