"""Guards on sizes: ranges of axes, interval arithmetic, witnesses, and the error for a dimension that is frozen."""
