import pytest

from pairmi.tasks.protein.antibody import REGIONS, heavy_regions
from pairmi.types import PairmiError

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
