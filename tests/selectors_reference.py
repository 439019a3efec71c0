"""The rules written as plain loops over one row: the references that the vectorised ones are compared with."""

from rules import Situation


def surest(given: Situation, row: int, by: str) -> list[int]:
    """The masked positions of a row, the most confident first, equals from left to right."""
    p = given.log_probs[row].exp().sort(-1).values
    score = {"confidence": p[:, -1], "margin": p[:, -1] - p[:, -2], "entropy": -given.entropies[row]}[by].tolist()
    return sorted(given.masked[row].nonzero()[:, 0].tolist(), key=lambda i: -score[i])


def guided(given: Situation, row: int, budget: float, penalty: float) -> list[int]:
    """Algorithm 1 of the paper."""
    entropies, mi = given.entropies[row].tolist(), given.mi[row].tolist()
    candidates = surest(given, row, "entropy")
    taken: list[int] = []
    left = budget
    for i in candidates:
        cost = entropies[i] + penalty * sum(mi[i][j] for j in taken)
        if cost <= left + 1e-9:
            taken.append(i)
            left -= cost
    return taken or candidates[:1]


def total_charge(given: Situation, row: int, members: list[int], penalty: float, entropy_weight: float) -> float:
    """What filling `members` at once is charged, from scratch: by falling entropy, the first is free."""
    entropies, mi = given.entropies[row].tolist(), given.mi[row].tolist()
    members = sorted(members, key=lambda i: (-entropies[i], i))
    charges = [
        min(entropies[k], penalty * sum(mi[k][j] for j in members[:n])) + entropy_weight * entropies[k] for n, k in enumerate(members) if n
    ]
    return sum(charges)


def bound(given: Situation, row: int, budget: float, penalty: float, order: str, entropy_weight: float) -> list[int]:
    """The mi-bound rule."""
    entropies, information = given.entropies[row].tolist(), given.mi[row].sum(1).tolist()
    key = {
        "lowest-entropy": lambda i: entropies[i],
        "highest-entropy": lambda i: -entropies[i],
        "information": lambda i: -information[i],
        "certain-information": lambda i: (entropies[i] > 1e-9, -information[i] if entropies[i] > 1e-9 else 0),
    }[order]
    taken: list[int] = []
    for i in sorted(given.masked[row].nonzero()[:, 0].tolist(), key=key):
        if total_charge(given, row, [*taken, i], penalty, entropy_weight) <= budget + 1e-9:
            taken.append(i)
    return taken


def independent(given: Situation, row: int, threshold: float, by: str) -> list[int]:
    """A greedy maximal independent set."""
    information = given.mi[row].sum(1).tolist()
    if by == "confidence":
        candidates = surest(given, row, "confidence")
    else:
        candidates = sorted(given.masked[row].nonzero()[:, 0].tolist(), key=lambda i: -information[i])
    taken: list[int] = []
    for i in candidates:
        if all(float(given.mi[row, i, j]) <= threshold + 1e-9 for j in taken):
            taken.append(i)
    return taken
