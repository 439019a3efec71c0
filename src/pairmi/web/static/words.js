// What the page says in words: terms, rules and their parameters, and the tour.

export const TERMS = {
  uncertainty: ["Uncertainty", "the entropy of one position: how unsure the model is of its symbol. 0 = sure; the most is ln of the number of symbols, 2.20 nats for nine."],
  shared: ["Shared", "mutual information: how much knowing one position would tell about another, on average. 0 = independent, so both can be filled at once. It is never more than either position's uncertainty."],
  nats: ["nats", "the unit of both, with natural logarithms: 1 nat = 1.44 bits. Two equally likely symbols are 0.69 nats."],
  head: ["Head", "a small network that reads the model's hidden states and estimates all pairs from a single pass. Quick, approximate."],
  exact: ["Exact", "measured: the likely symbols are tried in every open position, and the model says what changes elsewhere. Slow; values are right within the bound that is shown."],
  price: ["price", "what a rule loses on this canvas against filling one position at a time in the same order, in nats a sequence: 0 = the same distribution. Measured on eight sequences that the model draws, with a 95 % interval; it needs no right answer, and does not depend on greedy or verify."],
  pass: ["pass", "one call of the model on the canvas (NFE in the literature)."],
  greedy: ["greedy", "always the likeliest symbol; without it, symbols are drawn at random by their probabilities."],
  verify: ["verify", "the rule's choice is a draft: one more evaluation checks it, and what one-by-one decoding would not have drawn is drawn again. Same distribution as one by one."],
  seed: ["seed", "the same seed draws the same symbols."],
  temperature: ["temperature", "below 1 draws likelier symbols, above 1 less likely ones."],
};

export const PARAMETERS = {
  mi: "where the mutual information comes from: the head, exact probing, or a control (shuffled, random, structural)",
  budget: "nats that one pass may risk. Larger: fewer passes, more mistakes",
  charge: "by what a position is charged: its formula over pairs, or a map that was fitted to measured prices",
  draw: "from what the positions of a pass are drawn: each from its own marginal, or shifted by those drawn before it (coupled: by learnt tables, probed: by exact ones)",
  defer: "nats: a position of which learnt tables expect to lose more, given what was drawn before it, waits for a later pass",
  late: "nats: unless it fits at the end of the pass, with at most so much expected of all that the pass fills",
  penalty: "how heavily shared information counts against the budget",
  entropy_weight: "how heavily a position's own uncertainty counts against the budget",
  order: "which position is tried first",
  by: "what makes a position come first",
  k: "positions filled in each pass",
  confidence: "the least probability of the likeliest symbol that a position needs to be filled with others",
  threshold: "the limit that decides who is filled: a probability, or for independent-set nats",
  factor: "how strict; smaller is more careful",
  drift: "nats by which a prediction may still have moved",
  history: "passes that are looked back on",
  steps: "passes in all",
  noise: "how much chance is in the order",
};

export const RULES = {
  sequential: "Fills one position a pass, the most certain first. Nothing is lost; it takes as many passes as there are gaps.",
  "top-k": "Fills the k most certain positions in each pass, whether they depend on each other or not.",
  eb: "Fills the most certain positions until their uncertainty adds up to the budget. It does not look at pairs.",
  threshold: "Fills every position whose likeliest symbol is probable enough. It does not look at pairs.",
  factor: "Fills the most certain positions; the more it fills, the surer each has to be.",
  klass: "Fills what is probable enough and has stopped changing over the last passes.",
  maskgit: "Follows a fixed timetable: few positions in the first passes, many in the last, with some chance in the order.",
  "mi-guided": "Takes positions by rising uncertainty; each costs its own uncertainty plus what it shares with those already chosen. Fills what fits the budget.",
  "mi-bound": "Charges only for what positions share with each other, since only that is lost by filling them at once. Fills what fits the budget.",
  "independent-set": "Fills positions of which no two share more than the threshold.",
  demask: "Takes the most certain positions as long as what all of them share with each other adds up to at most the budget.",
};

export const LEADS = {
  board: "Each open cell lists what the model thinks fits. Point at one to see which others depend on it.",
  sequence: "Each gap lists the likeliest symbols; arcs join gaps that depend on each other. Point at one, or at the map.",
  race: "Several rules fill the same canvas. Fewer passes are faster; filling what depends on each other breaks it.",
};

export const TOUR = [
  ["#board, #strip", "The canvas", "Open positions list what the model thinks fits; darker ones are less certain. Point at one, or tap it: the others are coloured by what they share with it."],
  ["#legends", "Two shadings", "Blue is uncertainty, shown at rest. Orange is shared information, shown while you point. These two buttons say which one you see, and switch."],
  ["#measure", "Estimated or exact", "Head estimates all pairs from one pass. Exact probes the model. The question marks explain the words."],
  ["#run", "Decode", "Watch a rule fill the canvas pass by pass, and see why positions waited. Race, above, compares rules."],
];
