"""From a model and sequences to a head with its calibration and its rule, in the time that there is."""
