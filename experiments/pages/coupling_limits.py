"""What `docs/coupling.md` says of limits and misses."""

LIMITS = """## Limits

* Tables of pairs see nothing of an XOR: three bits whose parity is fixed still lose ln 2 when all are drawn together (`tests/test_coupling.py`).
* The tables in the package are for one model of one length and a small alphabet; for other models make your own (Large alphabets), or take `draw=probed`.
* Mutual information by formula from the tables is known less well than by the scalar head and takes several passes of time, so it is a study (`experiments/studies/table_mi.py`) and no estimate of the package: the tables were trained inside the sets of rules, and a small network for each pair of symbols is cheap only for symbols that are drawn.
* Missed: coupling in at most a tenth of a pass (Cost). The tables read four blocks where they read two, and a pass takes less time than it did; with `defer` about three candidates are judged for one that is drawn.
* Missed: mutual information from the tables at the fidelity of the scalar head and at most a tenth of a pass; take `mi=head`. Neither fewer symbols nor any monotone function of the reading mends it (Mutual information from the tables). Since the first layer is one product of the pair, drawing is quicker and this reading slower: 6 passes of time on a busy machine, 3.8 before.
* Not tried: tables that keep a state of all open positions while a set is drawn, or a layer of attention over these. The curve over the number of walks is flat (25 units, 400 steps of fresh tables): what limits is not the number of labels.
* Tables through embeddings were trained for minutes of one core on some hundred sentences. A fresh network of (h_i, e_v, h_j) by itself hardly learnt in that time: what a letter says of its neighbours is knowledge of the language model. Hence it is asked of the model once for each symbol, and gated. They know no doubt yet (`defer`), and tell no MI.
* Doubt is learnt from walks inside the sets of the rules named there; in sets of quite another kind it may expect too little.
* A price is a mean over the model's own sequences. It says what drawing at once loses against that model, not how good the model is.
"""
