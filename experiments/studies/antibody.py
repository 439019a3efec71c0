"""Framework and loops (CDR) of an antibody heavy chain, numbered as IMGT does, from its conserved residues; maps by these regions."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pairmi.bench import report
from pairmi.types import PairmiError

REGIONS = ("FR1", "CDR1", "FR2", "CDR2", "FR3", "CDR3", "FR4")
# IMGT's anchors: cysteine 23, tryptophan 41, cysteine 104, then tryptophan 118 of the motif W-G-x-G
ANCHORS = re.compile(r"^.{18,25}?(?P<c23>C).{10,18}?(?P<w41>W)[VIFALYC].{40,75}?[YFSH](?P<c104>C).{3,35}?(?P<w118>WG.G)")
FIRST_LOOP, FRAMEWORK_2, FRAMEWORK_3 = 3, 14, 38  # residues: 24-26 before CDR1; 42-55; 66-104, of which heavy chains lack 73


def heavy_regions(text: str) -> dict[str, range]:
    """The positions (from 0) of each region: the anchors are found by their motifs, the borders counted from them.

    IMGT (Lefranc et al. 2003): CDR1 = 27-38, CDR2 = 56-65, CDR3 = 105-117. CDR1 lies between the fourth residue after Cys 23 and the
    third before Trp 41, CDR2 starts 15 after Trp 41, framework 3 has 38 residues up to Cys 104, CDR3 is what lies between Cys 104 and
    Trp 118. No alignment to germ lines is made: an unusual framework 3 shifts the end of CDR2.
    """
    found = ANCHORS.search(text)
    if found is None:
        raise PairmiError(
            f"heavy chain: no Cys 23, Trp 41, Cys 104 and W-G-x-G in their usual places in {text[:30]}...; expected a complete VH"
        )
    c23, w41, c104, w118 = (found.start(name) for name in ("c23", "w41", "c104", "w118"))
    borders = (0, c23 + 1 + FIRST_LOOP, w41 - 2, w41 + 1 + FRAMEWORK_2, c104 + 1 - FRAMEWORK_3, c104 + 1, w118, len(text))
    return {name: range(start, end) for name, (start, end) in zip(REGIONS, pairwise(borders), strict=True)}


def region_records(text: str, matrix: np.ndarray) -> list[dict[str, Any]]:
    """The mean mutual information between each two regions of a heavy chain, the strongest first."""
    regions, records = heavy_regions(text), []
    for number, (one, mine) in enumerate(regions.items()):
        for other, theirs in list(regions.items())[number:]:
            pairs = [(i, j) for i in mine for j in theirs if i < j]
            if pairs:
                values = matrix[tuple(np.array(pairs).T)]
                records.append({"between": f"{one} - {other}", "pairs": len(pairs), "mean_nats": float(values.mean())})
    return sorted(records, key=lambda record: -record["mean_nats"])


def draw_regions(text: str, matrix: np.ndarray, title: str, file: Path) -> None:
    """The map of a heavy chain, its loops between orange lines."""
    plt = report.pyplot()
    figure, axis = plt.subplots(figsize=(7.6, 6.6), layout="constrained")
    ceiling = float(np.quantile(matrix[~np.eye(len(matrix), dtype=bool)], 0.998))
    image = axis.imshow(matrix, cmap="cividis", vmin=0, vmax=ceiling)
    regions = heavy_regions(text)
    for name, places in regions.items():
        for border in (places.start, places.stop) if name.startswith("CDR") else ():
            axis.axvline(border - 0.5, color="#D55E00", lw=1)
            axis.axhline(border - 0.5, color="#D55E00", lw=1)
    centres = [(places.start + places.stop - 1) / 2 for places in regions.values()]
    axis.set_xticks(centres, list(regions), fontsize=8)
    axis.set_yticks(centres, list(regions), fontsize=8)
    for label in (*axis.get_xticklabels(), *axis.get_yticklabels()):
        label.set_color("#D55E00" if label.get_text().startswith("CDR") else "k")
    axis.set_title(title, fontsize=10)
    figure.colorbar(image, label="nats", shrink=0.85, extend="max")
    report.save(figure, file)
