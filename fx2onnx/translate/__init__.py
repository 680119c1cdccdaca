"""Which function translates which operator, and what is tried where there is none."""
