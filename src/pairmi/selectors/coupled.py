"""Any rule, with members that are drawn one after the other from tables instead of all from their marginals."""

from dataclasses import dataclass, replace

from pairmi.types import Coupling, Selection, Selector, Turn


@dataclass(frozen=True)
class Coupled:
    """The rule's own choice; a coupling then shifts the marginal of each member by what was drawn before it in the same pass."""

    rule: Selector
    coupling: Coupling

    def __call__(self, turn: Turn) -> Selection:
        """Choose as the rule does."""
        return replace(self.rule(turn), coupling=self.coupling)
