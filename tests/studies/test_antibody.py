from pathlib import Path

import numpy as np
import pytest

from pairmi.types import PairmiError
from studies.antibody import REGIONS, draw_regions, heavy_regions, region_records

TRASTUZUMAB = "EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAYLQMNSLRAEDTAVYYCSRWGGDGFYAMDYWGQGTLVTVSS"
ADALIMUMAB = "EVQLVESGGGLVQPGRSLRLSCAASGFTFDDYAMHWVRQAPGKGLEWVSAITWNSGHIDYADSVEGRFTISRDNAKNSLYLQMNSLRAEDTAVYYCAKVSYLSTASSLDYWGQGTLVTVSS"


@pytest.mark.parametrize(
    ("text", "loops"),
    [(TRASTUZUMAB, ("GFNIKDTY", "IYPTNGYT", "SRWGGDGFYAMDY")), (ADALIMUMAB, ("GFTFDDYA", "ITWNSGHI", "AKVSYLSTASSLDY"))],
)
def test_the_loops_of_known_antibodies(text: str, loops: tuple[str, ...]) -> None:
    regions = heavy_regions(text)
    assert tuple(regions) == REGIONS
    assert tuple("".join(text[i] for i in regions[f"CDR{n}"]) for n in (1, 2, 3)) == loops
    assert [i for places in regions.values() for i in places] == list(range(len(text)))


@pytest.mark.parametrize("text", ["MKTAYIAKQR" * 12, TRASTUZUMAB[:90], ""])
def test_what_is_no_heavy_chain_is_refused(text: str) -> None:
    with pytest.raises(PairmiError, match="heavy chain: no Cys 23, Trp 41, Cys 104 and W-G-x-G in their usual places"):
        heavy_regions(text)


def test_the_map_of_a_heavy_chain_by_region(tmp_path: Path) -> None:
    matrix = np.zeros((len(TRASTUZUMAB), len(TRASTUZUMAB)))
    matrix[26, 100] = matrix[100, 26] = 1.0
    records = region_records(TRASTUZUMAB, matrix)
    assert records[0] == {"between": "CDR1 - CDR3", "pairs": 8 * 13, "mean_nats": pytest.approx(1 / 104)}
    assert records[1]["mean_nats"] == 0
    assert sum(record["pairs"] for record in records) == len(TRASTUZUMAB) * (len(TRASTUZUMAB) - 1) // 2
    draw_regions(TRASTUZUMAB, matrix + np.random.default_rng(0).random(matrix.shape) / 100, "map", tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
