"""The only cost meter: a backbone that counts how it is used."""

from collections.abc import Sequence

import torch

from pairmi.types import Backbone, PairmiError, Prediction, Tokens, Vocab, Wrapping


class Counting:
    """Counts calls (sequential passes) and rows (sequences evaluated), and refuses what is not a prediction.

    Rules and estimators are handed this backbone and no other, so no method can look at the model for free. A call of
    more than `piece` rows is evaluated in pieces, to bound memory: still one sequential pass.
    """

    def __init__(self, backbone: Backbone, piece: int = 256) -> None:
        self.backbone, self.piece = backbone, piece
        self.calls = 0
        self.rows = 0

    @property
    def vocab(self) -> Vocab:
        """The alphabet of the backbone."""
        return self.backbone.vocab

    @property
    def length(self) -> int | None:
        """The only length it takes; None = any."""
        return self.backbone.length

    def __call__(self, tokens: Tokens) -> Prediction:
        """One pass, counted."""
        self.calls += 1
        self.rows += len(tokens)
        with torch.no_grad():
            pieces = [self._checked(piece, self.backbone(piece)) for piece in tokens.split(self.piece)]
        return pieces[0] if len(pieces) == 1 else joined(pieces)

    def _checked(self, tokens: Tokens, prediction: Prediction) -> Prediction:
        who, expected = _name(self.backbone), (*tokens.shape, self.vocab.size)
        if tuple(prediction.log_probs.shape) != expected:
            raise PairmiError(f"{who}: expected log-probabilities of shape {list(expected)}, got {list(prediction.log_probs.shape)}")
        mass = prediction.log_probs.double().exp().sum(-1)
        if not bool(((mass - 1).abs() < 1e-3).all()):  # also false for NaN and infinities
            row, position = torch.nonzero(~((mass - 1).abs() < 1e-3))[0].tolist()
            raise PairmiError(
                f"{who}: log-probabilities of row {row}, position {position} sum to {float(mass[row, position]):.4g}, expected 1; "
                "the backbone must return finite, normalised log-probabilities (log_softmax), never logits"
            )
        return prediction


def _name(backbone: Backbone) -> str:
    """What the user calls the model that is to blame."""
    while isinstance(backbone, Wrapping):
        backbone = backbone.backbone
    return type(backbone).__name__


def joined(pieces: Sequence[Prediction]) -> Prediction:
    """Predictions of several batches as one."""
    attention = [piece.attention for piece in pieces if piece.attention is not None]
    return Prediction(
        torch.cat([piece.tokens for piece in pieces]),
        torch.cat([piece.log_probs for piece in pieces]),
        torch.cat([piece.hidden for piece in pieces]),
        torch.cat(attention) if attention else None,
    )
