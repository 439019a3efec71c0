"""Measurements as JSON lines: what a file holds already is not measured again, so that an interrupted grid goes on where it stopped."""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from pairmi.backbones.checkpoint import fingerprint
from pairmi.backbones.identity import identify
from pairmi.model import Model
from pairmi.provenance import provenance
from pairmi.spec import rule
from pairmi.types import PairmiError

BEGINS = '{"settings": '  # what every line begins with


def resolved(spec: str, model: Model) -> Any:
    """The rule of a specification with every parameter that it holds, defaults included; a head or a graph by its fingerprint."""
    return _spelled_out(rule(spec, model))


def _spelled_out(part: Any) -> Any:
    if isinstance(part, nn.Module):
        return fingerprint(part.state_dict())
    if isinstance(part, Tensor):
        return fingerprint({"": part})
    if is_dataclass(part):
        told = {field.name: getattr(part, field.name) for field in fields(part)}
        return {"type": type(part).__name__} | {name: _spelled_out(value) for name, value in told.items() if value != ()}  # () says nothing
    return part if isinstance(part, str | int | float | bool | None) else type(part).__name__


def depends_on(model: Model, spec: str) -> dict[str, Any]:
    """What every measurement of a rule depends on: a changed default, or another head where the rule reads one, finds no old numbers."""
    return {"rule": spec, "resolved": resolved(spec, model), "weights": identify(model)}


class Ledger:
    """A file with one measurement a line, each under the settings that it depends on; without a file, memory alone."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.found: dict[str, dict[str, Any]] = {}
        for number, line in enumerate(file.read_text().splitlines() if file is not None and file.is_file() else [], 1):
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                if line.startswith(BEGINS[: len(line)]):
                    continue  # cut off by a kill while it was written: measured again
                record = None
            if not isinstance(record, dict) or "settings" not in record:
                raise PairmiError(f"records: line {number} of {file} is no measurement; choose another file or remove it")
            self.found[self._name(record["settings"])] = record

    def find(self, settings: Mapping[str, Any]) -> dict[str, Any] | None:
        """The measurement under these settings, if there is one."""
        return self.found.get(self._name(settings))

    def add(self, settings: Mapping[str, Any], measurement: Mapping[str, Any]) -> dict[str, Any]:
        """Write a measurement at once, with commit, versions and machine."""
        record = {"settings": dict(settings), **measurement, "provenance": provenance()}
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            whole = not self.file.is_file() or self.file.read_bytes()[-1:] in (b"", b"\n")
            with self.file.open("a") as out:
                out.write(("" if whole else "\n") + json.dumps(record) + "\n")
        self.found[self._name(settings)] = record
        return record

    def measured(self, settings: Mapping[str, Any], measure: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """The measurement under these settings: from the file, or made now."""
        return self.find(settings) or self.add(settings, measure())

    @staticmethod
    def _name(settings: Mapping[str, Any]) -> str:
        return json.dumps(dict(settings), sort_keys=True)
