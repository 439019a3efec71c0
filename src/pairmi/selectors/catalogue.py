"""Every rule by its name. A new rule is one file and one line here; tests, command line and benchmarks follow."""

from pairmi.selectors.demask import Demask
from pairmi.selectors.eb import EB
from pairmi.selectors.factor import Factor
from pairmi.selectors.independent_set import IndependentSet
from pairmi.selectors.klass import Klass
from pairmi.selectors.maskgit import MaskGIT
from pairmi.selectors.mi_bound import MIBound
from pairmi.selectors.mi_guided import MIGuided
from pairmi.selectors.threshold import Threshold
from pairmi.selectors.top_k import Sequential, TopK

CATALOGUE: dict[str, type] = {
    "sequential": Sequential,
    "top-k": TopK,
    "eb": EB,
    "threshold": Threshold,
    "factor": Factor,
    "klass": Klass,
    "maskgit": MaskGIT,
    "mi-guided": MIGuided,
    "mi-bound": MIBound,
    "independent-set": IndependentSet,
    "demask": Demask,
}
