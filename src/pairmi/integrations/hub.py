"""Heads that can be shared: a folder with `head.safetensors` and a model card, here or on the model hub."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import Tensor

from pairmi.backbones.checkpoint import load_tensors, save_tensors, write_whole
from pairmi.loading import HEAD_FILE, head_file
from pairmi.mi.heads import UNTRAINED, build
from pairmi.optional import needed

CARD = "README.md"


@dataclass(frozen=True)
class PublishedHead:
    """A head with all that its file says of it: for which weights, from which labels, with which calibration."""

    tensors: Mapping[str, Tensor]
    about: Mapping[str, Any]

    @classmethod
    def from_pretrained(cls, name: str) -> "PublishedHead":
        """A head in the package, a file, a folder, or `owner/name[@revision]` on the hub, checked."""
        file = head_file(name)
        tensors, about = load_tensors(file)
        if about.get("head") != UNTRAINED:  # else a calibration and a rule for a model that can have none
            build(about, tensors, file)  # refuses what is no head
        return cls(tensors, about)

    def save_pretrained(self, folder: str | Path, base_model: str | None = None) -> Path:
        """Write the folder: `pairmi.load(base_model, head=folder)` reads it."""
        save_tensors(Path(folder) / HEAD_FILE, self.tensors, self.about)
        write_whole(Path(folder) / CARD, self.card(base_model, str(folder)).encode())
        return Path(folder)

    def push_to_hub(self, repository: str, base_model: str | None = None, private: bool = False) -> str:
        """Put it on the hub as one commit; the address of the commit. `hf auth login` first."""
        hub = needed("huggingface_hub", "push_to_hub", "'pairmi[hub]'")
        api = hub.HfApi()
        api.create_repo(repository, private=private, exist_ok=True)
        with TemporaryDirectory() as folder:
            save_tensors(Path(folder) / HEAD_FILE, self.tensors, self.about)
            card = self.card(base_model, repository).encode()
            files = [hub.CommitOperationAdd(HEAD_FILE, Path(folder) / HEAD_FILE), hub.CommitOperationAdd(CARD, card)]
            return str(api.create_commit(repository, files, commit_message="Head of pairmi").commit_url)

    def card(self, base_model: str | None = None, source: str = "owner/head") -> str:
        """The model card: what it is for, how to use it, what it was made from, what it does not promise."""
        about, model = self.about, base_model or "owner/model"
        named = {"library_name": "pairmi", "license": "apache-2.0", **({"base_model": base_model} if base_model else {})}
        front = "\n".join(["---", *(f"{key}: {value}" for key, value in named.items()), "tags:", "- mutual-information", "---"])
        size = sum(tensor.numel() for tensor in self.tensors.values())
        return CARD_TEXT.format(front=front, model=model, source=source, size=size, facts="\n".join(_facts(about)))


def _facts(about: Mapping[str, Any]) -> list[str]:
    """The rows of the card's table: what the file knows."""
    labels, trained = about.get("labels", {}), about.get("trained_on") or {}
    told = {
        "kind": about["head"],
        "weights of the model (fingerprint)": about["backbone"],
        "layers that it reads": ", ".join(map(str, about.get("layers", ()))) or None,
        "labelled states": labels.get("count"),
        "form of MI": labels.get("form"),
        "lengths seen": "-".join(map(str, trained["lengths"])) if trained.get("lengths") else None,
        "training steps": about.get("steps"),
        "tuned rule": about.get("rule", {}).get("words"),
        "calibrated charges": "yes" if "calibration" in about else "no",
        "pairmi commit": about.get("provenance", {}).get("commit"),
    }
    return [f"| {key} | {value} |" for key, value in told.items() if value is not None]


CARD_TEXT = """{front}

# Pairwise mutual information for {model}

A head of [pairmi](https://pypi.org/project/pairmi/): from one pass of the frozen model it estimates, in nats, how much every two
unknown positions depend on each other. {size:,} parameters, safetensors.

```python
import pairmi

model = pairmi.load("{model}", head="{source}")
print(pairmi.mutual_information(model, canvas, head="{source}"))
print(pairmi.decode(model, canvas, rule="mi-bound"))  # fills what is nearly independent in one pass
```

| | |
|---|---|
{facts}

It refuses a model of other weights than those named above. It is an estimate: `mi.bound` is infinite, and `mi.note` says when a canvas
is unlike what it was trained on. Pairwise information does not bound what three or more positions share; `verify=True` does not rely
on it.
"""
