"""Records of benchmarks as tests compare them."""

import json
from pathlib import Path
from typing import Any


def plain(file: Path) -> list[dict[str, Any]]:
    """The records without the times, and without what says where they come from."""
    records = [json.loads(line) for line in file.read_text().splitlines()]
    return [{k: v for k, v in record.items() if "seconds" not in k and k not in ("provenance", "engine")} for record in records]


def by_settings(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(records, key=lambda record: json.dumps(record["settings"], sort_keys=True))
