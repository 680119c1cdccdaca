"""Guards on sizes: ranges of dimensions, interval arithmetic, witnesses, and the error for a specialised dimension."""
