"""Any rule, block by block: of the unknown positions the leftmost run that is not finished is all that it sees."""

from dataclasses import dataclass

from pairmi.selectors.ranking import at_least
from pairmi.types import PairmiError, Selection, Selector, Turn


@dataclass(frozen=True)
class InBlocks:
    """The unknown positions in order, in runs of `block`: the loop shows the rule a window of one run at a time."""

    rule: Selector
    block: int

    def __post_init__(self) -> None:
        at_least(self, "block", self.block, 1)

    def __call__(self, turn: Turn) -> Selection:
        """Never: who calls rules by themselves, such as a price, looks at whole canvases."""
        raise PairmiError(f"InBlocks(block={self.block}): only decoding goes block by block; leave block= out to look at whole canvases")
