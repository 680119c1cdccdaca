"""Both sides of tests of values: a path of runs for each list of answers, and the paths as one graph with a `cond` at each test."""
