"""The real LLaDA2Pipeline with our scheduler and a tiny random network: the tokens of our own loop, in the steps of our rules."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from diffusers import BlockRefinementScheduler, DiffusionPipeline, LLaDA2Pipeline
from transformers import BertConfig, BertForMaskedLM

import pairmi
from heads import low_rank, save_head
from pairmi.backbones.huggingface import held
from pairmi.integrations.diffusers import PairScheduler, columns
from pairmi.loading import with_head
from pairmi.model import Model
from pairmi.results import Result
from pairmi.types import PairmiError

MASK, SIZE = 9, 14
PROMPTS = torch.tensor([[5, 6, 7, 8], [3, 3, 12, 13]])


@pytest.fixture(scope="module")
def network() -> BertForMaskedLM:
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "initializer_range": 0.4}
    return BertForMaskedLM(BertConfig(**shape, vocab_size=SIZE, max_position_embeddings=64)).eval()


def run(network: Any, scheduler: Any, prompts: torch.Tensor = PROMPTS, **changes: Any) -> tuple[list[list[int]], int]:
    """The sequences, and how many steps they took."""
    pipe, steps = LLaDA2Pipeline(network, scheduler), []
    pipe.set_progress_bar_config(disable=True)

    def count(pipe: Any, step: int, timestep: int, tensors: dict[str, Any]) -> dict[str, Any]:
        steps.append(step)
        return tensors

    settings = {"gen_length": 12, "block_length": 16, "temperature": 1.0, "mask_token_id": MASK, "eos_early_stop": False} | changes
    out = pipe(input_ids=prompts, output_type="seq", callback_on_step_end=count, **settings)
    return out.sequences.tolist(), len(steps)


def ours(model: Any, rule: str, prompts: torch.Tensor = PROMPTS, length: int = 12, **options: Any) -> list[Result]:
    translation = columns(SIZE, MASK)
    canvases = [translation.ours(torch.tensor([*prompt, *[MASK] * length])) for prompt in prompts.tolist()]
    return pairmi.decode(model, canvases, rule, **options)


def theirs(result: Any) -> list[int]:
    return columns(SIZE, MASK).inputs(result.tokens[None])[0].tolist()[4:]


@pytest.mark.parametrize("options", [{}, {"greedy": True}, {"temperature": 0.7}])
@pytest.mark.parametrize("rule", ["sequential", "eb:budget=1", "klass", "maskgit:steps=5"])
def test_the_pipeline_writes_the_tokens_of_our_own_loop(network: Any, rule: str, options: dict[str, Any]) -> None:
    expected = ours(held(network, columns(SIZE, MASK)), rule, seed=3, **options)
    temperature = 0.0 if "greedy" in options else options.get("temperature", 1.0)
    sequences, steps = run(network, PairScheduler(rule, seed=3), temperature=temperature)
    assert sequences == [theirs(one) for one in expected]
    assert steps == max(one.passes for one in expected)


@pytest.mark.parametrize("verify", [False, True])
def test_a_rule_that_asks_again_has_the_network_attached(network: Any, verify: bool) -> None:
    scheduler = PairScheduler("mi-bound:floor=0", verify=verify, seed=1).attach(network)
    sequences, steps = run(network, scheduler)
    expected = ours(held(network, columns(SIZE, MASK)), "mi-bound:floor=0", seed=1, verify=verify)
    assert sequences == [theirs(one) for one in expected]
    assert steps < 12  # sequential decoding takes 12
    scheduler.detach()
    assert not network._forward_hooks
    with pytest.raises(PairmiError, match=r"asks the model again .* scheduler.attach\(pipe.model\)"):
        run(network, scheduler)


def test_a_probe_sees_the_row_as_the_pipeline_asked_for_it(network: Any) -> None:
    scheduler = PairScheduler().attach(network)
    ids, mask = torch.randint(9, (2, 8)), torch.tensor([[1] * 8, [0] * 3 + [1] * 5])
    with torch.no_grad():
        network(ids, attention_mask=mask)
        other = torch.randint(9, (3, 4))
        found, _ = scheduler._watched.probe(1, other)
        row = network(torch.cat([ids[1:].expand(3, -1)[:, :4], other], 1), attention_mask=mask[1:].expand(3, -1))
    scheduler.detach()
    torch.testing.assert_close(found, row.logits[:, 4:])


def test_a_head_reads_the_hidden_states_of_the_pipelines_network(network: Any, tmp_path: Path) -> None:
    model = Model(held(network, columns(SIZE, MASK)))
    file = save_head(tmp_path / "head.safetensors", low_rank(width=32, symbols=SIZE - 1, length=0), model, layers=(1,))
    scheduler = PairScheduler("mi-bound:mi=head,budget=0.5", seed=2).attach(network, file)
    sequences, steps = run(network, scheduler)
    scheduler.detach()
    expected = ours(with_head(model, file), "mi-bound:mi=head,budget=0.5", seed=2)
    assert sequences == [theirs(one) for one in expected]
    assert steps < 12
    assert all(one.probe_rows == 0 for one in expected)


def test_blocks_are_filled_one_after_the_other_with_draws_of_their_own(network: Any) -> None:
    flat = BertForMaskedLM(network.config).eval()  # says the same everywhere: what differs is the draw
    for parameter in flat.parameters():
        parameter.data.zero_()
    sequences, steps = run(flat, PairScheduler("top-k:k=8", 8, seed=0), PROMPTS[:1, :0], gen_length=16, block_length=8)
    assert steps == 2  # and no pass for a full block
    assert sequences[0][:8] != sequences[0][8:]
    alone, _ = run(network, PairScheduler("eb", seed=4), PROMPTS[:1], block_length=4)
    assert alone[0] == run(network, PairScheduler("eb", seed=4), block_length=4)[0][0]  # whoever else is in the batch


def test_draws_come_from_the_pipelines_generator(network: Any) -> None:
    def once(scheduler: PairScheduler, seed: int) -> list[list[list[int]]]:
        rng = torch.Generator().manual_seed(seed)
        return [run(network, scheduler, generator=rng)[0] for _ in range(2)]

    first, second = once(PairScheduler("eb"), 0)
    assert first != second
    assert once(PairScheduler("eb"), 0) == [first, second]
    assert once(PairScheduler("eb"), 1) != [first, second]


def test_a_row_stops_at_the_end_of_text(network: Any) -> None:
    scheduler = PairScheduler("top-k:k=4", 4, seed=0)
    (whole,), steps = run(network, scheduler, PROMPTS[:1], block_length=4)
    assert steps == 3  # a block each
    (ended,), steps = run(network, scheduler, PROMPTS[:1], block_length=4, eos_early_stop=True, eos_token_id=whole[5])
    assert steps == 1 + whole.index(whole[5]) // 4
    assert ended[: 4 * steps] == whole[: 4 * steps]
    assert set(ended[4 * steps :]) <= {MASK}


def test_it_spends_no_pass_on_a_full_block_as_the_pipelines_own_scheduler_does(network: Any) -> None:
    one = {"gen_length": 16, "threshold": 0.0, "editing_threshold": None}
    assert run(network, BlockRefinementScheduler(block_length=16), PROMPTS[:, :0], **one)[1] == 2
    assert run(network, PairScheduler("top-k:k=16", seed=0), PROMPTS[:, :0], **one)[1] == 1


def test_it_is_saved_and_loaded_alone_and_in_a_pipeline(network: Any, tmp_path: Path) -> None:
    made = PairScheduler("eb:budget=2", block_length=8, verify=True, seed=7)
    made.save_pretrained(tmp_path / "scheduler")
    again = PairScheduler.from_pretrained(tmp_path / "scheduler")
    assert {key: again.config[key] for key in ("rule", "block_length", "verify", "seed")} == {
        "rule": "eb:budget=2",
        "block_length": 8,
        "verify": True,
        "seed": 7,
    }
    LLaDA2Pipeline(network, PairScheduler("eb:budget=2", seed=7)).save_pretrained(tmp_path / "pipe")
    pipe = DiffusionPipeline.from_pretrained(tmp_path / "pipe")
    assert run(pipe.model, pipe.scheduler) == run(network, PairScheduler("eb:budget=2", seed=7))


def test_what_it_cannot_do_is_said(network: Any) -> None:
    with pytest.raises(PairmiError, match="is for masked tokens"):
        PairScheduler().step(torch.zeros(1, 2, SIZE), 0, torch.zeros(1, 2, dtype=torch.long))
    with pytest.raises(PairmiError, match="leave out top_k=3 and top_p=None"):
        run(network, PairScheduler(), top_k=3)
    with pytest.raises(PairmiError, match="rule 'ebb' is unknown; did you mean 'eb'"):
        run(network, PairScheduler("ebb"))


def test_without_diffusers_the_extra_is_named() -> None:
    code = "import sys; sys.modules['diffusers'] = None; import pairmi.integrations.diffusers"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
    assert told.endswith("PairmiError: PairScheduler: diffusers is missing; pip install 'pairmi[diffusers]'\n")
