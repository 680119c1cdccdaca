"""Both sides of tests that torch.export cannot decide: traced once for each list of answers, and joined as runs are."""
