"""What all results over pairs of positions can do: be ranked, drawn, saved, shown in a notebook."""

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from pairmi.optional import needed
from pairmi.pairs import files, page, picture
from pairmi.pairs.scores import Scores
from pairmi.types import PairmiError


@runtime_checkable
class Pairs(Protocol):
    """A matrix of scores [L, L] with what is needed to show it."""

    @property
    def scores(self) -> Scores:
        """The numbers with their labels."""

    def strongest(self, count: int = 10) -> list[tuple[int, int, float]]:
        """The pairs with the highest scores above 0: (i, j, score), positions from 0, i < j unless there are two directions."""
        if count < 0:
            raise PairmiError(f"strongest: count must be >= 0, got {count}")
        return self.scores.strongest(count)

    def to_numpy(self) -> Float[np.ndarray, "L L"]:
        """The matrix."""
        return self.scores.matrix.copy()

    def to_dataframe(self) -> Any:
        """A pandas table, a line for each pair: i, j, their names and symbols, score."""
        return needed("pandas", "to_dataframe", "pandas").DataFrame(files.columns(self.scores))

    def to_networkx(self, least: float = 0.0) -> Any:
        """A networkx graph: a node for each position, with its `name` and `symbol`; an edge with `weight` for each pair above `least`."""
        networkx, scores = needed("networkx", "to_networkx", "networkx"), self.scores
        made = networkx.DiGraph() if scores.directed else networkx.Graph()
        made.add_nodes_from((i, {"name": scores.names[i], "symbol": scores.symbols[i]}) for i in scores.shown)
        pairs = zip(*(part.tolist() for part in scores.listed()), strict=True)
        made.add_weighted_edges_from(pair for pair in pairs if pair[2] > least)
        return made

    def plot(self, title: str | None = None) -> Any:
        """A matplotlib figure: heat map with labels; colours end at the 99.5 % quantile."""
        return picture.drawn(self.scores, title)

    def save(self, file: str | Path) -> None:
        """Write .npz, .parquet or .csv (numbers), .html (a page with hover), .svg, .png or another picture."""
        files.save(self.scores, Path(file))

    def _repr_html_(self) -> str:
        """For notebooks: the page, in a frame of its own."""
        height = page.height(self.scores)
        return f'<iframe srcdoc="{escape(page.html(self.scores))}" style="width:100%;height:{height}px;border:0" title="map"></iframe>'


@dataclass(frozen=True)
class PairMap(Pairs):
    """What depends on what in a complete sequence."""

    matrix: Float[Tensor, "L L"]  # zero diagonal; before symmetrising, [changed i, observed j]
    symbols: tuple[str, ...]  # of the sequence
    names: tuple[str, ...]  # of the positions
    title: str
    unit: str
    rows: int  # sequences evaluated
    directed: bool = False

    def __repr__(self) -> str:
        top = self.strongest(1)
        said = f"strongest {self.names[top[0][0]]}-{self.names[top[0][1]]} with {top[0][2]:.3g}" if top else "nothing depends on anything"
        return f"PairMap({self.title}: {len(self.matrix)} positions; {said} ({self.unit}); {self.rows} rows)"

    @property
    def scores(self) -> Scores:
        """The numbers with their labels."""
        matrix = self.matrix.to("cpu", torch.float64).numpy()
        return Scores(matrix, self.symbols, self.names, tuple(range(len(matrix))), self.title, self.unit, self.directed)
