"""What the tests of the rules share: every rule in mild, swept and reckless settings, and random situations to choose in."""

from dataclasses import dataclass

import torch

from pairmi.backbones.transformer import Transformer, TransformerConfig
from pairmi.bench.grid import settings
from pairmi.counting import Counting
from pairmi.draw import Streams
from pairmi.info import entropy, pair_matrix, pairs
from pairmi.model import Model
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import looks_at_pairs
from pairmi.types import Meter, PairMatrix, Positions, Prediction, RowStreams, Tokens, Turn
from worlds import Fixed, Linked, generator

_RECKLESS = {
    "top-k": "k=16",
    "eb": "budget=50",
    "threshold": "threshold=0.0",
    "factor": "factor=100",
    "klass": "threshold=0,drift=10",
    "maskgit": "steps=1",
    "mi-guided": "budget=50",
    "mi-bound": "budget=50",
    "independent-set": "threshold=50",
    "demask": "budget=500",
}
PAIRWISE = tuple(name for name in CATALOGUE if looks_at_pairs(name))


def reckless(name: str) -> str:
    """The rule at its most careless; a rule that is not known here at its defaults."""
    return f"{name}:{_RECKLESS[name]}" if name in _RECKLESS else name


def singly(spec: str) -> str:
    """The same rule, one position a pass."""
    return f"{spec}{',' if ':' in spec else ':'}commit=one"


def varieties(name: str) -> list[str]:
    """A rule at its defaults, at both ends of its sweep, and at its most careless."""
    return list(dict.fromkeys([name, settings(name)[0], settings(name)[-1], reckless(name)]))


@dataclass(frozen=True)
class Given:
    """An estimate that is already there."""

    matrix: PairMatrix

    def __call__(self, prediction: Prediction, backbone: Meter, rng: RowStreams) -> PairMatrix:
        return torch.where(pairs(prediction.queried), self.matrix, 0)


@dataclass(frozen=True)
class Situation:
    """Random beliefs and dependences over canvases with some positions given."""

    log_probs: torch.Tensor
    masked: Positions
    mi: PairMatrix

    @property
    def entropies(self) -> torch.Tensor:
        return entropy(self.log_probs)

    @property
    def confidence(self) -> torch.Tensor:
        return self.log_probs.exp().amax(-1)

    def turn(self, state: dict[str, torch.Tensor] | None = None, number: int = 0) -> Turn:
        tokens = torch.where(self.masked, self.log_probs.shape[-1], 0)
        backbone = Counting(Fixed(self.log_probs[0], self.log_probs.shape[-1]))
        return Turn(
            Prediction(tokens, self.log_probs, self.log_probs), backbone, Streams(0, torch.arange(len(tokens)), number), state or {}
        )


def situation(rows: int = 150, length: int = 7, size: int = 4, seed: int = 0, dense: bool = False) -> Situation:
    """From certain to uniform beliefs; half of the pairs share nothing, unless `dense`."""
    rng = generator(seed)
    sharpness = 8 * torch.rand(rows, length, 1, generator=rng, dtype=torch.float64)
    log_probs = (sharpness * torch.randn(rows, length, size, generator=rng, dtype=torch.float64)).log_softmax(-1)
    masked = torch.rand(rows, length, generator=rng) < torch.rand(rows, 1, generator=rng)
    masked[:, 0] |= ~masked.any(1)
    share = 0.01 + 0.9 * torch.rand(rows, length, length, generator=rng, dtype=torch.float64)
    if not dense:
        share = share * (torch.rand(rows, length, length, generator=rng) < 0.3)
    entropies = entropy(log_probs)
    return Situation(log_probs, masked, pair_matrix(share * torch.minimum(entropies[:, :, None], entropies[:, None, :]), masked))


def beliefs(*certainties: float, size: int = 3) -> torch.Tensor:
    """Log-probabilities [1, L, size] in which the first symbol of each position has the given probability."""
    first = torch.tensor(certainties, dtype=torch.float64)[:, None]
    return torch.cat([first, ((1 - first) / (size - 1)).expand(-1, size - 1)], dim=1).log()[None]


def opinionated(config: TransformerConfig, seed: int = 0, attention: bool = False) -> Model:
    """A transformer with random weights, scaled so that its predictions are far from uniform and hang on the context."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Transformer(config, attention).eval()
        with torch.no_grad():
            model.readout.weight.normal_(std=1.5 / config.width**0.5)
            for block in model.blocks:
                block.mix.weight.normal_(std=2 / config.width**0.5)
                block.down.weight.normal_(std=1 / config.width**0.5)
    return Model(model, "opinionated", task=Linked(torch.ones(config.length, config.length).double()))


def partly_given(complete: Tokens, mask: int, seed: int = 0) -> Tokens:
    """Canvases with anything from nothing to all but one position given."""
    rng = generator(seed)
    hidden = torch.rand(complete.shape, generator=rng) < torch.linspace(0.1, 1.01, len(complete))[:, None]
    hidden[:, 0] |= ~hidden.any(1)
    return torch.where(hidden, mask, complete)
