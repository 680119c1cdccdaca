"""Times, memory and figures that can be compared, and what surrounds a benchmark."""
