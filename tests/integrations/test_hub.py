"""Heads in folders and on a stand-in for the model hub: written, found, refused."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import pairmi
from foreign import made
from heads import low_rank, save_head, tiny
from hub import serving
from pairmi.backbones.checkpoint import load_tensors, save_tensors
from pairmi.backbones.identity import identify
from pairmi.integrations.hub import PublishedHead
from pairmi.loading import with_head
from pairmi.mi.heads import UNTRAINED
from pairmi.types import PairmiError

ONLINE = """
import json, sys
import pairmi
from pairmi.integrations.hub import PublishedHead

folder, commit, said = sys.argv[1], sys.argv[2], {}

def refused(name, call):
    try:
        call()
    except pairmi.PairmiError as error:
        said[name] = str(error)

if commit:  # the first time, with a network
    said["pushed"] = PublishedHead.from_pretrained(folder).push_to_hub("me/head", "me/model")
    refused("revision", lambda: pairmi.load("me/model", head="me/head@nothing"))
    refused("pickles", lambda: pairmi.load("me/model", head="me/pickles"))
model = pairmi.load("me/model", head="me/head")
said["text"] = pairmi.decode(model, "MK....AY", "mi-bound:mi=head", seed=2).text
said["local"] = pairmi.decode(pairmi.load("me/model", head=folder), "MK....AY", "mi-bound:mi=head", seed=2).text
refused("nobody", lambda: pairmi.load("me/model", head="me/nobody"))
print(json.dumps(said))
"""


def run(address: str, home: Path, *arguments: str, offline: bool) -> dict[str, Any]:
    """In a process of its own: `huggingface_hub` reads the environment when it is imported."""
    settings = {"HF_ENDPOINT": address, "HF_HOME": str(home), "HF_HUB_OFFLINE": str(int(offline)), "HF_TOKEN": "hf_standin"}
    environment = os.environ | settings | {"PYTHONPATH": str(Path(pairmi.__file__).parents[1]), "no_proxy": "127.0.0.1"}
    done = subprocess.run([sys.executable, "-c", ONLINE, *arguments], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_head_goes_to_the_hub_and_comes_back(tmp_path: Path) -> None:
    model = made("esm2", tmp_path)
    head = low_rank(width=32, symbols=20, length=0)
    save_head(tmp_path / "mine" / "head.safetensors", head, pairmi.load(model), layers=(1,), steps=7)
    with serving() as hub:
        hub.put_folder("me/model", Path(model))
        hub.put("me/pickles", {"head.bin": pickle.dumps({"a": 1}), "head.pt": b"x"})
        online = run(hub.address, tmp_path / "home", str(tmp_path / "mine"), "yes", offline=False)
        assert not any("pickles" in path and not path.endswith("head.safetensors") for path in hub.asked)
        assert online["pushed"].startswith(f"{hub.address}/me/head/commit/")
        assert set(hub.repositories["me/head"]["main"]) == {"head.safetensors", "README.md"}
        card = hub.repositories["me/head"]["main"]["README.md"].decode()
    assert 'pairmi.load("me/model", head="me/head")' in card
    assert "base_model: me/model" in card
    assert "| training steps | 7 |" in card
    assert online["text"] == online["local"]
    assert online["revision"] == "head: 'me/head' has no revision 'nothing' on the model hub"
    assert online["pickles"] == "head: 'me/pickles' has no head.safetensors on the model hub (other formats are not read)"
    assert "the model hub has no 'me/nobody'" in online["nobody"]
    offline = run("http://127.0.0.1:9", tmp_path / "home", str(tmp_path / "mine"), "", offline=True)  # from the cache
    assert offline["text"] == online["text"]
    assert "HF_HUB_OFFLINE is set and it is not in the cache" in offline["nobody"]


def test_a_folder_holds_the_same_head(tmp_path: Path) -> None:
    model = tiny()
    file = save_head(tmp_path / "one.safetensors", low_rank(), model, calibration={"any": 1})
    published = PublishedHead.from_pretrained(file)
    folder = published.save_pretrained(tmp_path / "folder")
    tensors, about = load_tensors(folder / "head.safetensors")
    assert about == load_tensors(Path(file))[1]
    assert all(torch.equal(tensors[name], tensor) for name, tensor in published.tensors.items())
    assert "| calibrated charges | yes |" in (folder / "README.md").read_text()
    (folder / "head.safetensors").unlink()
    with pytest.raises(PairmiError, match=r"head: the folder .* has no head.safetensors"):
        PublishedHead.from_pretrained(str(folder))


def test_a_tuned_rule_is_on_the_card_with_a_head_or_without(tmp_path: Path) -> None:
    rule = {"rule": "eb:budget=1", "words": "eb:budget=1 loses little"}
    file = save_head(tmp_path / "tuned.safetensors", low_rank(), tiny(), rule=rule)
    assert "| tuned rule | eb:budget=1 loses little |" in PublishedHead.from_pretrained(file).card()
    assert with_head(tiny(), str(PublishedHead.from_pretrained(file).save_pretrained(tmp_path / "tuned"))).rule == "eb:budget=1"
    about = {"kind": "head", "head": UNTRAINED, "backbone": identify(tiny()), "rule": rule}
    save_tensors(tmp_path / "bare" / "head.safetensors", {}, about)
    card = PublishedHead.from_pretrained(str(tmp_path / "bare")).card()
    assert "| tuned rule | eb:budget=1 loses little |" in card
    assert "layers" not in card


def test_every_head_in_the_package_can_be_published(tmp_path: Path) -> None:
    for name in pairmi.loading.HEADED:
        card = PublishedHead.from_pretrained(name).card()
        assert "labelled states" in card
        assert "{" not in card


def test_what_is_no_head_is_not_published(tmp_path: Path) -> None:
    with pytest.raises(PairmiError, match=r"no file at missing\.safetensors"):
        PublishedHead.from_pretrained("missing.safetensors")
    with pytest.raises(PairmiError, match="cannot get 'nobody/head' from the model hub"):
        with_head(tiny(), "nobody/head")


@pytest.mark.parametrize("call", [lambda: with_head(tiny(), "me/head"), lambda: PublishedHead({}, {}).push_to_hub("me/head")])
def test_without_the_hubs_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, call: Any) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(PairmiError, match=r"pip install 'pairmi\[hub\]'"):
        call()
