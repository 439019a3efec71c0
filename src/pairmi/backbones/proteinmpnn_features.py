"""What ProteinMPNN sees of a structure: who is near whom, how far their atoms are apart, and how far along the chain."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

ATOMS = ("N", "CA", "C", "O", "CB")
PAIRS = (  # in the order in which the published weights take them
    "CA-CA", "N-N", "C-C", "O-O", "CB-CB", "CA-N", "CA-C", "CA-O", "CA-CB", "N-C", "N-O", "N-CB", "CB-C", "CB-O", "O-C",
    "N-CA", "C-CA", "O-CA", "CB-CA", "C-N", "O-N", "CB-N", "C-CB", "O-CB", "C-O",
)  # fmt: skip
NEAREST, FARTHEST, BASES = 2.0, 22.0, 16  # Angstrom; radial basis functions of a distance
REACH = 32  # residues along the chain; more are as many
ALONG = 5  # classes of pairs by steps along the chain: 0, 1 to 3, and more or another chain


def with_beta(atoms: Float[Tensor, "L 4 3"]) -> Float[Tensor, "L 5 3"]:
    """The backbone with a C-beta where it is in an ideal residue, also of glycine."""
    n, ca, c, _ = atoms.unbind(1)
    before, after = ca - n, c - ca
    beta = ca - 0.58273431 * torch.linalg.cross(before, after) + 0.56802827 * before - 0.54067466 * after
    return torch.cat([atoms, beta[:, None]], dim=1)


def distances(one: Float[Tensor, "*A 3"], other: Float[Tensor, "*B 3"]) -> Float[Tensor, "..."]:
    """Between places, in Angstrom; never quite 0."""
    return ((one - other).square().sum(-1) + 1e-6).sqrt()


def nearest(places: Float[Tensor, "L 3"], count: int) -> Int[Tensor, "L K"]:
    """For each place the `count` nearest ones, itself first; all, where there are fewer."""
    apart = distances(places[:, None], places[None])
    return apart.topk(min(count, len(places)), dim=1, largest=False).indices


def radial(apart: Float[Tensor, "L K"]) -> Float[Tensor, "L K 16"]:
    """exp(-((d - m) / w)^2) for 16 centres m from 2 to 22 Angstrom, w = 20 / 16."""
    centres = torch.linspace(NEAREST, FARTHEST, BASES, device=apart.device)
    return (-((apart[..., None] - centres) * (BASES / (FARTHEST - NEAREST))).square()).exp()


def steps(chains: Int[Tensor, " L"], index: Int[Tensor, " L"]) -> Int[Tensor, "L L"]:
    """How many steps along the chain two residues are apart, in `ALONG` classes."""
    along = (index[:, None] - index).abs().clamp_max(ALONG - 1)
    return torch.where(chains[:, None] == chains, along, ALONG - 1)


class Features(nn.Module):
    """The edges of the graph of neighbours; parameters have the names of the published weights."""

    def __init__(self, width: int, neighbours: int) -> None:
        super().__init__()
        self.count = neighbours
        self.embeddings = nn.ModuleDict({"linear": nn.Linear(2 * REACH + 2, BASES)})  # the last class: another chain
        self.edge_embedding = nn.Linear(BASES * (1 + len(PAIRS)), width, bias=False)
        self.norm_edges = nn.LayerNorm(width)

    def forward(
        self, atoms: Float[Tensor, "L 4 3"], chains: Int[Tensor, " L"], index: Int[Tensor, " L"]
    ) -> tuple[Float[Tensor, "L K D"], Int[Tensor, "L K"]]:
        """The edges from each residue to its nearest ones, by the distance of C-alpha, and which these are."""
        places = dict(zip(ATOMS, with_beta(atoms).unbind(1), strict=True))
        near = nearest(places["CA"], self.count)
        apart = [radial(distances(places[one][:, None], places[other][near])) for one, other in (pair.split("-") for pair in PAIRS)]
        along = (index[:, None] - index[near] + REACH).clamp(0, 2 * REACH)
        along = torch.where(chains[:, None] == chains[near], along, 2 * REACH + 1)
        position = self.embeddings["linear"](nn.functional.one_hot(along, 2 * REACH + 2).to(atoms.dtype))
        return self.norm_edges(self.edge_embedding(torch.cat([position, *apart], dim=-1))), near
