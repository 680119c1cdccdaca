"""Equal blocks of a model: found, proven equal, captured once, written as local functions."""
