"""What docs/price.md says of all frontiers in one table, read from their sections."""

import re
from collections.abc import Mapping

from pages.price import COMPARED
from pairmi.bench import report


def table_of(text: str) -> list[dict[str, str]]:
    """The first table of a text."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    return [dict(zip(lines[0], row, strict=True)) for row in lines[2:]]


RATIOS = re.compile(r"at equal price: ([\d.]+) to ([\d.]+)\. (It is beaten by .*|No setting)")


GAINED = (
    "The gain over uncalibrated `mi-bound` is over the best of its settings of (budget, penalty, entropy_weight), chosen on the same "
    "sequences, which favours them; in brackets how many settings of the calibrated rule take fewer passes by more than their paired 95 % "
    "interval, and how many take more.\n\n"
)


def over_knobs(text: str) -> str:
    """What a section says of the passes of calibrated settings by those of uncalibrated `mi-bound`."""
    cells = [one["uncalibrated mi-bound"] for one in table_of(text.partition(COMPARED)[2].partition("<details>")[0])]
    found = [[float(number) for number in re.findall(r"[\d.]+", cell)] for cell in cells]
    fewer, more = sum(high < 1 for _, _, high in found), sum(low > 1 for _, low, _ in found)
    values = [value for value, _, _ in found]
    return f"{min(values):.2f} to {max(values):.2f} ({fewer} fewer, {more} more, of {len(found)})" if found else ""


def overview(sections: Mapping[str, tuple[str, str]]) -> str:
    """One line for each scene, (its model and what its section says): by how much calibrated `mi-bound` is ahead."""
    rows = []
    for title, (model, text) in sections.items():
        ratios, size, whole = RATIOS.search(text), re.search(r"(\d+) sequences, ", text), re.search(r"decoding takes ([\d.]+) passes", text)
        if ratios is None or size is None or whole is None:
            continue
        low, high, above = ratios.groups()
        beaten = ", ".join(re.findall(r"`([^`]+)`", above)) or "-"
        rows.append(
            {"scene": title, "model": model, "sequences": size.group(1), "sequential passes": whole.group(1)}
            | {
                "by the best without MI": f"{low} to {high}",
                "half": halved(float(low), float(high)),
                "by uncalibrated mi-bound": over_knobs(text),
                "beaten by": beaten,
            }
        )
    return report.table(rows, tuple(rows[0])) if rows else ""


def halved(low: float, high: float) -> str:
    """Whether at most half of the passes are needed at equal price."""
    return "yes" if high <= 0.5 else "in part" if low <= 0.5 else "no"
