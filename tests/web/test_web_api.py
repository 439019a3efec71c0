import json

import pytest
import torch

from pairmi import api as public
from pairmi import tuning
from pairmi.commit import Sampling
from pairmi.loading import load
from pairmi.mi.probe import Probe
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import parameters
from pairmi.types import PairmiError
from pairmi.web import api, showing
from pairmi.web.work import Watch
from serving import PUZZLE, models

FOUR = load("sudoku4")
HALF = "1" + "." * 15


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    return models(tmp_path_factory.mktemp("web"))


def events():
    told = []
    return told, Watch(tell=told.append)


def test_describe_offers_every_rule_with_every_parameter(loaded):
    found = api.describe(loaded)
    assert json.loads(json.dumps(found)) == found
    assert [rule["name"] for rule in found["rules"]] == list(CATALOGUE)
    for rule in found["rules"]:
        assert {one["name"]: one["default"] for one in rule["parameters"]} == parameters(rule["name"]) | {
            "draw": "marginal",
            "defer": None,
            "late": None,
        }
    bound = next(rule for rule in found["rules"] if rule["name"] == "mi-bound")
    order = next(one for one in bound["parameters"] if one["name"] == "order")
    assert order["choices"] == ["lowest-entropy", "information", "certain-information", "highest-entropy"]
    wide = next(model for model in found["models"] if model["name"] == "words")
    assert (wide["spaced"], wide["size"]) == (True, 6)
    sides = {model["name"]: (model["side"], model["head"], model["puzzles"]) for model in found["models"]}
    assert sides == {
        "sudoku": (9, True, True),
        "sudoku4": (4, False, False),
        "markov": (None, False, False),
        "slow": (None, False, False),
        "words": (None, False, False),
    }


def test_estimates_are_those_that_the_model_can_give(loaded):
    assert api.estimates(loaded["sudoku"]) == ["head", "probe", "shuffled", "random", "structural"]
    assert api.estimates(loaded["markov"]) == ["probe", "shuffled", "random"]


def test_look_gives_marginals_and_the_heads_matrix_from_one_pass(loaded):
    watch = Watch()
    found = showing.look(loaded["sudoku"], PUZZLE, watch)
    model, tokens = loaded["sudoku"], loaded["sudoku"].vocab.encode(PUZZLE)
    expected = public.estimated(model, tokens[None])[0]
    assert watch.rows == 1
    assert [row is None for row in found["candidates"]] == [letter != "." for letter in PUZZLE]
    torch.testing.assert_close(torch.tensor(found["mi"]["matrix"]), expected.matrix.float(), atol=6e-5, rtol=0)
    torch.testing.assert_close(torch.tensor(found["entropies"]).double(), expected.entropies, atol=6e-5, rtol=0)
    assert found["mi"]["bound"] is None
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_look_without_a_head_has_no_matrix():
    found = showing.look(FOUR, HALF, Watch())
    assert found["mi"] is None
    assert found["conflict"] is None
    assert sorted(found["candidates"][1]) == [["1", 0], ["2", 0.3333], ["3", 0.3333], ["4", 0.3333]]
    assert [p for _, p in found["candidates"][1]] == [0.3333, 0.3333, 0.3333, 0]


def test_look_marks_what_contradicts_itself(loaded):
    twice = showing.look(loaded["sudoku"], "55" + "." * 79, Watch())
    assert twice == {"conflict": {"message": "5 stands twice in row 1, at r1c1 and r1c2", "positions": [0, 1]}}
    several = showing.look(FOUR, "1234" + "12" + "." * 10, Watch())
    assert several == {"conflict": {"message": "no sequence of this world fits the given positions", "positions": [0, 4]}}


def test_symbols_of_several_letters_are_set_apart_by_spaces(loaded):
    found = showing.look(loaded["words"], "the . .", Watch())
    assert found["candidates"] == [None, [["dog", 0.6667], ["cat", 0.3333], *found["candidates"][1][2:]], found["candidates"][2]]
    assert api.decode(loaded["words"], "constitutionally . .", "sequential", Sampling(), Watch())["text"] == "constitutionally cat sleeps"
    with pytest.raises(PairmiError, match="canvas: 'a' at 2 is not in the alphabet of words"):
        showing.look(loaded["words"], "the a .", Watch())


def test_what_an_estimate_says_of_itself_reaches_the_page(loaded, monkeypatch):
    estimated = public.estimated
    noted = "outside of what the head was trained for"

    def with_note(*arguments):
        found = estimated(*arguments)
        vars(found[0])["note"] = noted
        return found

    assert showing.look(loaded["sudoku"], PUZZLE, Watch())["mi"]["note"] is None
    monkeypatch.setattr(public, "estimated", with_note)
    assert showing.look(loaded["sudoku"], PUZZLE, Watch())["mi"]["note"] == noted


def test_positions_of_sequences_are_counted_from_one(loaded):
    told, watch = events()
    api.decode(loaded["markov"], "......", "independent-set:threshold=0", Sampling(), watch)
    passes = [event["pass"] for event in told if "pass" in event]  # a slow machine tells of its progress in between
    waiting = passes[-1]["waiting"] or passes[-2]["waiting"]
    assert all(f"depends on {one['on'] + 1} by" in one["why"] for one in waiting.values())
    assert waiting


def test_probe_equals_the_public_function_and_tells_how_far_it_is():
    told, watch = events()
    found = showing.probe(FOUR, HALF, watch)
    expected = public.mutual_information(FOUR, HALF)
    torch.testing.assert_close(torch.tensor(found["mi"]["matrix"]).double(), expected.matrix, atol=6e-5, rtol=0)
    assert watch.rows == watch.total == expected.rows == found["mi"]["rows"]
    assert told
    assert all(set(event) == {"rows", "total"} for event in told)


def test_probe_knows_its_rows_beforehand():
    tokens = torch.stack([FOUR.vocab.encode(HALF), FOUR.vocab.encode("1234" + "." * 12)])
    prediction = FOUR(tokens)
    for floor in (0.0, 0.01, 0.5):
        probe = Probe(floor=floor)
        assert probe.rows(prediction).tolist() == probe.measure(prediction, FOUR).rows.tolist()


def test_decode_tells_every_pass_as_the_public_function_does():
    told, watch = events()
    result = api.decode(FOUR, HALF, "mi-bound:budget=0", Sampling(seed=3), watch)
    passes = [event["pass"] for event in told if "pass" in event]
    expected = public.decode(FOUR, HALF, "mi-bound:budget=0", seed=3, steps=True)
    assert (result["text"], result["passes"]) == (expected.text, expected.passes)
    assert [step["filled"] for step in passes] == [step.filled for step in expected.steps]
    assert [{i: one["why"] for i, one in step["waiting"].items()} for step in passes] == [step.waiting for step in expected.steps]
    blocked = [one for step in passes for one in step["waiting"].values() if one["why"].startswith("depends on")]
    assert blocked
    assert all(f"depends on {FOUR.task.position(one['on'])} by" in one["why"] for one in blocked)
    assert (result["verdict"], result["broken"]) == ("valid", None)


def test_a_price_is_that_of_the_public_function_with_its_progress():
    told, watch = events()
    found = api.price(FOUR, HALF, "top-k:k=4", 3, 1.0, watch)
    public_one = tuning.price(FOUR, HALF, "top-k:k=4", seed=3, sequences=api.PRICED)
    assert (found["nats"], found["interval"], found["passes"]) == (public_one.nats, list(public_one.interval), public_one.passes)
    assert found["nats"] > 0.1
    assert told
    assert watch.total == 15 * api.PRICED
    assert api.price(FOUR, HALF, "sequential", 3, 1.0, Watch())["nats"] == 0


def test_decode_says_where_it_broke(loaded):
    watch = Watch()
    result = api.decode(FOUR, "." * 16, "top-k:k=16", Sampling(seed=1), watch)
    assert result["broken"] == {
        "pass": 1,
        "positions": list(range(16)),
        "message": "no sequence of this world fits the given positions",
    }
    result = api.decode(loaded["sudoku"], PUZZLE, "top-k:k=81", Sampling(seed=0), watch)
    solution = api.solution(loaded["sudoku"], loaded["sudoku"].vocab.encode(PUZZLE))
    wrong = [i for i in range(81) if result["text"][i] != str(int(solution[i]) + 1)]
    assert result["broken"]["positions"] == wrong
    first = wrong[0]
    said = f"r{first // 9 + 1}c{first % 9 + 1} is {int(solution[first]) + 1}, not {result['text'][first]}"
    assert result["broken"]["message"] == said


def test_solution_gives_up_where_the_search_is_long(loaded, monkeypatch):
    tokens = loaded["sudoku"].vocab.encode(PUZZLE)
    assert api.solution(loaded["sudoku"], tokens) is not None
    assert api.solution(loaded["sudoku"], torch.full((81,), 9)) is None
    monkeypatch.setattr(api, "SEARCH", 3)
    assert api.solution(loaded["sudoku"], tokens) is None
    assert api.solution(FOUR, torch.full((16,), 4)) is None


def test_puzzles_are_a_function_of_the_seed():
    first, again, other = api.puzzle(30, 5), api.puzzle(30, 5), api.puzzle(30, 6)
    assert first == again != other
    assert sum(letter != "." for letter in first["canvas"]) == 30


def test_puzzles_need_a_solver(monkeypatch):
    monkeypatch.setattr(api, "find_spec", lambda name: None)
    with pytest.raises(PairmiError, match=r"puzzles need a solver: pip install 'pairmi\[sudoku\]'"):
        api.puzzle(30, 5)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("top-k:k=99999999999999999999999", "k must be between -1e"),
        ("eb:budget=nan", "budget must be between"),
        ("eb:budget=inf", "budget must be between"),
        ("mi-guided:mi=attention", "mi must be one of probe, shuffled, random, structural for model 'sudoku4', got attention"),
        ("mi-guided:mi=head", "mi must be one of"),
        ("mi-gided", "did you mean 'mi-guided'"),
        ("eb:budget=-1", "budget must be >= 0"),
    ],
)
def test_rules_that_a_page_may_not_ask_for(rule, message):
    with pytest.raises(PairmiError, match=message):
        api.selector(FOUR, rule)


def test_a_canvas_must_fit_a_page():
    with pytest.raises(PairmiError, match="canvas: expected at most 512 positions, got 513; 'pairmi mi' takes longer ones"):
        api.checked(FOUR, "." * 513)


def test_what_is_imagined_is_what_a_pass_says_or_what_the_tables_say(loaded):
    exact = showing.imagine(FOUR, HALF, 1, "2", Watch())
    looked = showing.look(FOUR, "12" + "." * 14, Watch())
    assert (exact["by"], exact["candidates"], exact["entropies"]) == ("pass", looked["candidates"], looked["entropies"])
    model = load("sudoku")
    learnt, plain = showing.imagine(model, "." * 81, 40, "5", Watch()), showing.look(model, "." * 81, Watch())
    assert learnt["by"] == "tables"
    assert learnt["candidates"][40] is None
    chance = [dict(map(tuple, found["candidates"][41]))["5"] for found in (learnt, plain)]
    assert chance[0] < 0.5 * chance[1]  # the cell beside it can hardly be a 5 any more
    far = [dict(map(tuple, found["candidates"][0]))["5"] for found in (learnt, plain)]
    assert far[0] == pytest.approx(far[1], abs=0.1)


@pytest.mark.parametrize(("position", "symbol"), [(0, "2"), (99, "2"), (1, "x")])
def test_what_cannot_be_imagined_is_refused(position, symbol):
    with pytest.raises(PairmiError, match="imagine: expected an open position and a symbol of sudoku4"):
        showing.imagine(FOUR, HALF, position, symbol, Watch())


def test_a_complete_sequence_has_a_map(loaded):
    found = showing.chart(loaded["markov"], "".join(loaded["markov"].vocab.symbols[n] for n in (0, 0, 1, 1, 0, 1)), Watch())["mi"]
    assert found["kind"] == "map"
    assert len(found["matrix"]) == 6
    with pytest.raises(PairmiError, match="a map is of a complete sequence"):
        showing.chart(FOUR, HALF, Watch())
