"""A backbone at another temperature."""

from dataclasses import replace

from torch.nn import functional

from pairmi.types import Backbone, PairmiError, Prediction, Tokens, Vocab


class Tempered:
    """p(x)^(1/T), normalised, in place of p(x): for drawing, entropies, probes and verification alike."""

    def __init__(self, backbone: Backbone, temperature: float) -> None:
        if not 0 < temperature < float("inf"):
            raise PairmiError(f"temperature={temperature}: must be a number above 0; for the likeliest symbol use greedy")
        self.backbone, self.temperature = backbone, temperature

    @property
    def vocab(self) -> Vocab:
        """The alphabet of the backbone."""
        return self.backbone.vocab

    @property
    def length(self) -> int | None:
        """The only length it takes; None = any."""
        return self.backbone.length

    def __call__(self, tokens: Tokens) -> Prediction:
        """One pass."""
        prediction = self.backbone(tokens)
        if self.temperature == 1:
            return prediction
        return replace(prediction, log_probs=functional.log_softmax(prediction.log_probs / self.temperature, dim=-1))
