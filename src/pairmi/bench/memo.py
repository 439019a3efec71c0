"""Results that are kept as they come: JSON lines, each under what it depends on, so that a killed run goes on."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pairmi.types import PairmiError


class Memo:
    """What was already worked out, in memory and, with a file, beyond this run."""

    def __init__(self, file: Path | None = None) -> None:
        self.file, self.known = file, dict[str, Any]()
        if file is None or not file.is_file():
            return
        for number, line in enumerate(file.read_text().splitlines(keepends=True), 1):
            if not line.endswith("\n"):  # cut off by a crash: it is worked out again
                file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
                break
            try:
                record = json.loads(line)
                self.known[json.dumps(record["key"], sort_keys=True)] = record["value"]
            except (json.JSONDecodeError, KeyError, TypeError) as error:
                raise PairmiError(f"{file}, line {number}: not a kept result; choose another file") from error

    def get(self, key: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """The result under this key; made, and kept, if it is not known."""
        name = json.dumps(key, sort_keys=True)
        if name not in self.known:
            self.known[name] = make()
            if self.file is not None:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                with open(self.file, "a") as out:
                    out.write(json.dumps({"key": key, "value": self.known[name]}) + "\n")
        return self.known[name]
