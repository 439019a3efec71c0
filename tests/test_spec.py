from dataclasses import replace
from pathlib import Path

import pytest
import torch

from heads import low_rank, save_head
from pairmi.backbones.checkpoint import save_tensors
from pairmi.backbones.identity import identify
from pairmi.backbones.transformer import Transformer, TransformerConfig
from pairmi.commit import Sampling
from pairmi.decoding import decode
from pairmi.loading import load
from pairmi.mi.probe import Probe
from pairmi.mi.proxies import Attended, RandomMI, Shuffled, Structural
from pairmi.model import Model
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.selectors.eb import EB
from pairmi.selectors.mi_guided import MIGuided
from pairmi.selectors.top_k import TopK
from pairmi.selectors.wrappers import OneAtATime
from pairmi.spec import ESTIMATES, estimate, parameters, parse, rule
from pairmi.tasks.sudoku.task import Sudoku
from pairmi.tasks.tables import WORLDS
from pairmi.types import Backbone, PairmiError, Vocab
from worlds import Incoherent

MODEL = load("sudoku4")
SHAPE = TransformerConfig("abc", "._", length=4, width=8, depth=1, heads=2)


def test_a_specification_becomes_a_rule() -> None:
    assert rule("eb", MODEL) == EB()
    assert rule("eb:budget=2,by=margin", MODEL) == EB(2.0, "margin")
    assert rule("top-k:k=3", MODEL) == TopK(3)
    assert rule("mi-guided:mi=probe,form=kl,floor=0,budget=0.5,penalty=2", MODEL) == MIGuided(Probe("kl", 0.0), 0.5, 2.0)
    assert rule("mi-guided:mi=random", MODEL) == MIGuided(RandomMI())
    assert rule("top-k:k=3,commit=one", MODEL) == OneAtATime(TopK(3))
    assert rule("top-k:k=3,commit=all", MODEL) == TopK(3)
    with pytest.raises(PairmiError, match=r"^rule 'eb:commit=twice': commit must be one of all, one, got 'twice'$"):
        rule("eb:commit=twice", MODEL)


def test_estimates_by_name() -> None:
    model = replace(MODEL, head=RandomMI())  # stands in for a learned one
    kinds = {name: type(estimate(name, model)) for name in ESTIMATES}
    assert kinds == {
        "probe": Probe, "head": RandomMI, "shuffled": Shuffled, "random": RandomMI, "structural": Structural, "attention": Attended,
    }  # fmt: skip
    assert estimate("shuffled", model) == Shuffled(RandomMI())
    assert estimate("shuffled", MODEL) == Shuffled(Probe())


def test_a_model_without_a_head_says_so() -> None:
    with pytest.raises(PairmiError, match=r"^mi=head: model 'sudoku4' has no head; load\(..., head=FILE\), or choose another mi$"):
        rule("mi-bound:mi=head", MODEL)


def test_weights_and_tables_have_a_fingerprint() -> None:
    with pytest.raises(PairmiError, match=r"^Incoherent: has neither weights nor a table .* give it an attribute `identity`"):
        identify(Incoherent(3, 2, 0, 1.0))
    assert identify(MODEL) == identify(load("sudoku4")) != identify(load("xor"))
    assert identify(Model(Transformer(SHAPE))) != identify(Transformer(SHAPE))  # two random starts


@pytest.mark.parametrize("name", CATALOGUE)
def test_parameters_are_those_of_the_rule_with_its_defaults(name: str) -> None:
    spec = f"{name}:" + ",".join(f"{key}={value}" for key, value in parameters(name).items())
    assert rule(spec, MODEL) == rule(name, MODEL)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mi-gided", r"rule 'mi-gided' is unknown; did you mean 'mi-guided'\?"),
        ("zzz", "rule 'zzz' is unknown; known: sequential, top-k, "),
        ("", "rule '' is unknown; known: "),
        ("eb:bugdet=1", r"rule 'eb:bugdet=1': eb has no parameter 'bugdet'; did you mean 'budget'\?"),
        ("eb:mi=probe", "eb has no parameter 'mi'; did you mean 'commit'"),
        ("eb:budget=much", "rule 'eb:budget=much': budget must be a number, got 'much'"),
        ("top-k:k=2.5", "rule 'top-k:k=2.5': k must be a whole number, got '2.5'"),
        ("mi-bound:floor=low", "floor must be a number, got 'low'"),
        ("mi-bound:mi=random,floor=0.5", "mi=random: takes no floor; these are for mi=probe"),
        ("eb:budget=1,budget=2", "rule 'eb:budget=1,budget=2': budget is given twice"),
        ("eb:budget", "rule 'eb:budget': expected key=value after the colon, got 'budget'"),
        ("eb:budget=", "expected key=value after the colon, got 'budget='"),
        ("eb:budget=-1", r"EB\(budget=-1.0\): budget must be >= 0 nats"),
        ("mi-guided:budget=nan", r"MIGuided\(budget=nan\): budget must be >= 0 nats"),
        ("eb:by=luck", r"EB\(by='luck'\): by must be one of entropy, confidence, margin"),
        ("mi-bound:mi=prob", r"mi=prob: unknown estimate; did you mean 'probe'\?"),
        ("mi-bound:floor=-1", r"Probe\(floor=-1.0, batch_rows=256\): floor must be >= 0 nats"),
    ],
)
def test_a_bad_specification_is_refused_in_one_line(spec: str, message: str, unchecked: None) -> None:
    with pytest.raises(PairmiError, match=f"^{message}" if message.startswith("rule") else message) as caught:
        rule(spec, MODEL)
    assert "\n" not in str(caught.value)


def test_an_unknown_form_is_refused(unchecked: None) -> None:
    with pytest.raises(PairmiError, match=r"^Probe\(form='mean'\): form must be joint, kl, tv, entropy$"):
        rule("mi-bound:form=mean", MODEL)


def test_structure_needs_a_graph_and_attention_a_backbone_that_reports_it() -> None:
    with pytest.raises(PairmiError, match=r"^mi=structural: no structure is known for model 'markov'; choose another mi$"):
        rule("mi-bound:mi=structural", load("markov"))
    with pytest.raises(PairmiError, match=r"^Attended: the backbone reports no attention"):
        decode(MODEL, torch.full((1, 16), 4), rule("mi-bound:mi=attention", MODEL), Sampling())


def test_parse_splits() -> None:
    assert parse("a") == ("a", {})
    assert parse("a:b=1,c=d=e") == ("a", {"b": "1", "c": "d=e"})


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_loads_as_a_backbone(name: str) -> None:
    model = load(name)
    assert isinstance(model, Backbone)
    assert model.name == name
    assert not model(torch.full((1, model.length), model.vocab.size)).log_probs.requires_grad


def test_positions_of_a_board_have_names() -> None:
    assert MODEL.task.position(6) == "r2c3"
    assert load("markov").task.position(6) == "7"  # people count from 1


def test_a_task_says_what_contradicts_itself() -> None:
    taken = torch.tensor([0, 0] + [4] * 14)
    assert MODEL.task.conflict(taken) == "no sequence of this world fits the given positions"
    assert Sudoku(2).conflict(taken) == "1 stands twice in row 1, at r1c1 and r1c2"
    assert Model(Incoherent(3, 2, 0, 1.0)).task.conflict(torch.zeros(3).long()) is None


def test_an_unknown_model_is_refused_with_a_suggestion() -> None:
    with pytest.raises(PairmiError, match=r"^load: no model or file 'sudoku5'; did you mean 'sudoku(4)?'\?$"):
        load("sudoku5")


def written(folder: Path, about: dict[str, object], **changed: torch.Tensor) -> Path:
    save_tensors(folder / "m.safetensors", Transformer(SHAPE).state_dict() | changed, about)
    return folder / "m.safetensors"


@pytest.mark.parametrize("about", [{"shape": vars(SHAPE)}, {"job": {"shape": vars(SHAPE)}}])
def test_a_weights_file_loads_without_gradients(tmp_path: Path, about: dict[str, object]) -> None:
    model = load(str(written(tmp_path, about)), attention=True)
    prediction = model(torch.full((2, 4), 3))
    assert model.vocab == Vocab(("a", "b", "c"), "._")
    assert prediction.attention.shape == (2, 4, 4)
    assert not any(parameter.requires_grad for parameter in model.backbone.parameters())
    assert model.graph is None


def test_files_are_named_by_paths_too(tmp_path: Path) -> None:
    file = written(tmp_path, {"shape": vars(SHAPE)})
    model = load(file)
    assert model.name == str(file)
    head = save_head(tmp_path / "head.safetensors", low_rank(width=8, symbols=3, length=4), model, layers=(1,))
    for place in (Path(head), tmp_path):
        assert type(load(file, head=place).head) is type(load(str(file), head=str(place)).head)
    with pytest.raises(PairmiError, match=r"^load: no model or file 'nope.safetensors'"):
        load(Path("nope.safetensors"))


def test_weights_say_what_their_task_is(tmp_path: Path) -> None:
    shape = TransformerConfig(width=8, depth=1, heads=1)
    save_tensors(tmp_path / "s.safetensors", Transformer(shape).state_dict(), {"shape": vars(shape), "corpus": {"name": "sudoku"}})
    model = load(str(tmp_path / "s.safetensors"))
    assert model.graph.sum() == 81 * 20
    assert model.task.conflict(torch.tensor([0, 0] + [9] * 79)) == "1 stands twice in row 1, at r1c1 and r1c2"
    assert model.task.position(80) == "r9c9"


def test_weights_that_are_no_transformer_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PairmiError, match=r"m.safetensors holds no network \(no 'shape' in its description\)$"):
        load(str(written(tmp_path, {"steps": 3})))
    with pytest.raises(PairmiError, match=r"m.safetensors do not fit its own description; fetch or train it again$"):
        load(str(written(tmp_path, {"shape": vars(SHAPE)}, position=torch.zeros(5, 8))))
