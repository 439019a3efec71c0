"""The price of parallel decoding: what a rule loses against one by one, in nats; calibration of charges; intervals."""
