"""Framework and loops (CDR) of an antibody heavy chain, numbered as IMGT does, from its conserved residues."""

import re
from itertools import pairwise

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
