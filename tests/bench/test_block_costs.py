"""A block costs what a block costs, however long the canvas: bounds that the logits of the whole canvas would break."""

import pytest

from pairmi.bench.block_costs import block_costs

SYMBOLS, LENGTH, BLOCK = 8192, 96, 6
WHOLE = 4e-9 * SYMBOLS * LENGTH  # gigabytes of one full-length prediction in float32


@pytest.fixture(scope="module")
def records() -> dict[str, dict[str, float]]:
    with pytest.MonkeyPatch.context() as patch:
        for module in ("counting", "mi.sampled"):
            patch.setattr(f"pairmi.{module}.NUMBERS", 1)  # one row at a time, as at larger sizes
        return {record["what"]: record for record in block_costs(SYMBOLS, LENGTH, BLOCK, rounds=1)}


def test_memory_grows_with_the_block(records: dict[str, dict[str, float]]) -> None:
    assert set(records) == {"MI, 2 draws", "mi-bound, 2 draws", "mi-bound, MI given"}
    for record in records.values():
        assert BLOCK / LENGTH * WHOLE < record["gigabytes"] < 0.6 * WHOLE, record


def test_rows_are_counted(records: dict[str, dict[str, float]]) -> None:
    assert records["MI, 2 draws"]["rows"] == 1 + 2 * BLOCK
    given = records["mi-bound, MI given"]
    assert given["rows"] == given["passes"] <= BLOCK
    assert records["mi-bound, 2 draws"]["rows"] > 1 + 2 * BLOCK - 1
    assert all(record["beside_ms_a_row"] > 0 for record in records.values())
