"""Our rules as a scheduler of `diffusers`, for its pipelines over masked tokens such as `LLaDA2Pipeline`."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pairmi.backbones.huggingface import held
from pairmi.backbones.translation import Translation
from pairmi.commit import Sampling
from pairmi.decoding import iter_decode
from pairmi.loading import with_head
from pairmi.model import Model
from pairmi.optional import needed
from pairmi.results import Step
from pairmi.spec import rule as parse_rule
from pairmi.types import PairmiError, Prediction, Tokens, Vocab

needed("diffusers.schedulers.scheduling_block_refinement", "PairScheduler", "'pairmi[diffusers]'")
from diffusers import BlockRefinementScheduler, ConfigMixin, SchedulerMixin  # noqa: E402 (typed as they are; their absence has a remedy)
from diffusers.configuration_utils import register_to_config  # noqa: E402
from diffusers.schedulers.scheduling_block_refinement import BlockRefinementSchedulerOutput  # noqa: E402


@lru_cache(maxsize=4)
def columns(count: int, mask: int) -> Translation:
    """Between our ids and the columns of a pipeline's logits, of which the mask's is left out."""
    return Translation({str(i): i for i in range(count) if i != mask}, mask, (), ())


class Watched:
    """The network of a pipeline whose calls are seen: what it was last asked, and the hidden states that a head reads."""

    def __init__(self, network: nn.Module, layers: tuple[int, ...]) -> None:
        self.network, self.layers, self.probing, self.asked = network, layers, False, dict[str, Any]()
        self.hidden: Float[Tensor, "B T D"] | None = None
        self.handles = [network.register_forward_pre_hook(self._before, with_kwargs=True), network.register_forward_hook(self._after)]

    def _before(self, _: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if not self.probing:
            self.asked = {**named, **({"input_ids": args[0]} if args else {})}
        return args, {**named, "output_hidden_states": True} if self.layers else named

    def _after(self, _: nn.Module, args: tuple[Any, ...], out: Any) -> None:
        if self.layers:
            self.hidden = torch.cat([out.hidden_states[layer].float() for layer in self.layers], dim=2)

    def probe(self, row: int, block: Int[Tensor, "N L"]) -> tuple[Float[Tensor, "N L C"], Float[Tensor, "N L D"] | None]:
        """What the network says of other contents of the block, for one row of what it was last asked."""
        named = {
            key: value[row : row + 1].expand(len(block), -1) if isinstance(value, Tensor) else value for key, value in self.asked.items()
        }
        ids, kept = named.pop("input_ids"), self.hidden
        self.probing = True
        try:
            out = self.network(torch.cat([ids[:, : ids.shape[1] - block.shape[1]], block], dim=1), **named)
        finally:
            self.probing = False
        hidden, self.hidden = self.hidden, kept
        return out.logits[:, -block.shape[1] :], None if hidden is None else hidden[:, -block.shape[1] :]


class Row:
    """The block of one row of a pipeline's batch as a backbone, and our own loop over it; the pipeline evaluates, the loop decides."""

    length = None

    def __init__(self, number: int, translation: Translation, watched: Watched | None) -> None:
        self.number, self.translation, self.watched, self.begun = number, translation, watched, 0
        self.vocab: Vocab = translation.vocab
        self.tokens: Tokens | None = None  # after the last step
        self.prediction: Prediction | None = None  # that the pipeline has made, until the loop asks for it
        self.steps: Iterator[Step] = iter(())

    def __call__(self, tokens: Tokens) -> Prediction:
        """What the pipeline evaluated, if it is that; else a probe."""
        ready, self.prediction = self.prediction, None
        if ready is not None and ready.tokens.shape == tokens.shape and torch.equal(ready.tokens, tokens):
            return ready
        if self.watched is None:
            raise PairmiError("PairScheduler: this rule asks the model again (probing, verifying); first: scheduler.attach(pipe.model)")
        return self._said(tokens, *self.watched.probe(self.number, self.translation.inputs(tokens)))

    def _said(self, tokens: Tokens, logits: Float[Tensor, "N L C"], hidden: Float[Tensor, "N L D"] | None) -> Prediction:
        log_probs = self.translation.log_probs(logits)
        return Prediction(tokens, log_probs, log_probs[:, :, :1] if hidden is None else hidden)

    def step(self, tokens: Tokens, logits: Float[Tensor, "1 L C"], model: Model, rule: str, sampling: Sampling) -> Step:
        """One turn of the loop from these logits; the loop begins again where the block is not what it left behind."""
        hidden = None if self.watched is None or self.watched.hidden is None else self.watched.hidden[self.number : self.number + 1]
        self.prediction = self._said(tokens, logits, None if hidden is None else hidden[:, -tokens.shape[1] :])
        if self.tokens is None or not torch.equal(self.tokens, tokens):
            owner = replace(model, backbone=self, device=logits.device)
            index = torch.tensor([self.number + (self.begun << 32)])  # other draws in every block
            self.steps, self.begun = iter_decode(owner, tokens, parse_rule(rule, owner), sampling, index), self.begun + 1
        step = next(self.steps)
        self.tokens = step.tokens
        return step


class PairScheduler(SchedulerMixin, ConfigMixin):  # type: ignore[misc]
    """Fill what a rule of pairmi chooses, such as "mi-bound:budget=0.1", in the place of `BlockRefinementScheduler`.

    A rule takes as many steps as it needs, at most one a position: `num_inference_steps`, `threshold` and `minimal_topk` of the pipeline
    change nothing, and nothing is edited afterwards. A rule that probes, or reads a head, needs `attach(pipe.model)`. `verify` follows
    the distribution of sequential decoding in the rule's order. Draws come from `seed`; without one, from the pipeline's generator.
    """

    order = 1

    @register_to_config  # type: ignore[untyped-decorator]
    def __init__(self, rule: str = "eb", block_length: int = 32, verify: bool = False, seed: int | None = None) -> None:
        self._watched: Watched | None = None
        self._guide: Model | None = None
        self.set_timesteps(block_length)

    def attach(self, network: nn.Module, head: str | None = None) -> "PairScheduler":
        """Watch the pipeline's network: rules may probe it, and `head` (a file, a folder, a hub id) reads its hidden states."""
        self.detach()
        self._guide = None
        if head is not None:
            size = int(network.config.vocab_size)  # type: ignore[union-attr, arg-type]
            self._guide = with_head(Model(held(network, columns(size, size - 1)), type(network).__name__), head)
        layers = () if self._guide is None else self._guide.backbone.layers  # type: ignore[attr-defined]
        self._watched = Watched(network, layers)
        return self

    def detach(self) -> None:
        """Let the network go."""
        for handle in self._watched.handles if self._watched else ():
            handle.remove()
        self._watched = None

    def set_timesteps(self, num_inference_steps: int, device: Any = None, block_length: int | None = None) -> None:
        """A new call of the pipeline begins."""
        self.num_inference_steps = num_inference_steps
        self.timesteps = torch.arange(num_inference_steps - 1, -1, -1, device=device)
        self._rows: list[Row] = []
        self._sampling: Sampling | None = None
        self._open: Bool[Tensor, " B"] | None = None

    def step(
        self,
        model_output: Float[Tensor, "B L C"],
        timestep: Any,
        sample: Tokens,
        *,
        mask_token_id: int | None = None,
        temperature: float = 0.0,
        top_p: float | None = None,
        top_k: int | None = None,
        sampling_method: str = "auto",
        threshold: float | None = None,
        editing_threshold: float | None = None,
        minimal_topk: int | None = None,
        prompt_mask: Bool[Tensor, " L"] | None = None,
        generator: torch.Generator | None = None,
        return_dict: bool = True,
    ) -> Any:
        """Fill what the rule chooses in each row that has a mask."""
        if mask_token_id is None:
            raise PairmiError("PairScheduler: is for masked tokens; this pipeline has no mask_token_id")
        greedy = temperature == 0 or sampling_method == "greedy"
        if not greedy and (top_k or (top_p or 1.0) < 1):
            raise PairmiError(f"PairScheduler: draws from the whole distribution; leave out top_k={top_k} and top_p={top_p}")
        self._begin(model_output, mask_token_id, temperature, greedy, generator)
        model, sampling = self._guide or Model(self._rows[0]), self._sampling
        assert sampling is not None
        after, filled, probs = sample.clone(), torch.zeros_like(sample).bool(), torch.zeros_like(model_output[:, :, 0])
        for number in (sample == mask_token_id).any(1).nonzero()[:, 0].tolist():
            row = self._rows[number]
            tokens, logits = row.translation.ours(sample[number]).to(sample.device)[None], model_output[number : number + 1]
            step = row.step(tokens, logits, model, self.config.rule, sampling)
            written, filled[number] = row.translation.inputs(step.tokens)[0], step.committed[0]
            after[number] = torch.where(filled[number], written, sample[number])
            probs[number] = logits[0].softmax(-1).gather(1, after[number][:, None])[:, 0].where(filled[number], 0)
        self._open = (after == mask_token_id).any(1)
        parts = (after, filled, torch.zeros_like(filled), after, probs, model_output)
        return BlockRefinementSchedulerOutput(*parts) if return_dict else parts

    def _begin(self, logits: Float[Tensor, "B L C"], mask: int, temperature: float, greedy: bool, generator: Any) -> None:
        """The rows and the draws of a call of the pipeline, at its first step."""
        if self._sampling is None:
            seed = self.config.seed
            if seed is None:
                where = generator.device if generator is not None else "cpu"
                seed = int(torch.randint(2**62, (), generator=generator, device=where))
            self._sampling = Sampling(seed, 1.0 if greedy else temperature, greedy, self.config.verify)
        if len(self._rows) != len(logits):
            translation = columns(logits.shape[2], mask)
            self._rows = [Row(number, translation, self._watched) for number in range(len(logits))]

    check_eos_finished = staticmethod(BlockRefinementScheduler.check_eos_finished)

    def check_block_should_continue(self, *, finished: Bool[Tensor, " B"], **_: Any) -> bool:
        """Until every row that goes on is full; no pass is spent on a full block, and what else the pipeline tells changes nothing."""
        return self._open is not None and bool((self._open & ~finished).any())
