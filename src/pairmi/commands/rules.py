"""`pairmi rules`."""

import argparse

from pairmi.commands.document import dumped
from pairmi.loading import EMBEDDED
from pairmi.selectors.catalogue import CATALOGUE
from pairmi.spec import COMMITS, DRAWS, ESTIMATES, parameters
from pairmi.tasks.tables import WORLDS


def run(options: argparse.Namespace) -> None:
    """`pairmi rules`."""
    rows = [
        {
            "name": name,
            "parameters": parameters(name) | {"commit": COMMITS[0], "draw": DRAWS[0]},
            "about": (rule.__doc__ or "").splitlines()[0],
            "reference": vars(rule)["reference"],
        }
        for name, rule in CATALOGUE.items()
    ]
    if options.json:
        print(dumped(rows))
        return
    for row in rows:
        defaults = ",".join(f"{key}={value}" for key, value in row["parameters"].items())
        print(f"{row['name']}:{defaults}\n    {row['about']}\n    {row['reference']}")
    print(f"\nmi = {' | '.join(ESTIMATES)}; with mi=probe also form=joint|kl|tv|entropy and floor=NATS, or draws=K (kl, tv) and error=NATS")
    print(f"commit = {' | '.join(COMMITS)}, for every rule: all that it chose in one pass, or one position a pass in its order")
    print("block = N, for every rule: the first N unknown positions at a time; nothing is computed of the others")
    print(f"draw = {' | '.join(DRAWS)}, for every rule: from marginals, or shifted by the members before: by learnt or by exact tables")
    print("defer = NATS, with draw=coupled: members of which learnt tables expect to lose more wait for a later pass")
    print("late = NATS, with defer: but for those that fit at the end of the set, with at most so much expected of the whole")
    print(f"models: {', '.join(EMBEDDED)}; exact worlds: {', '.join(WORLDS)}")
