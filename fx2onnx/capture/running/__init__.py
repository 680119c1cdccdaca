"""Capture by running: a module is run at several settings of its moving sizes, and the notes of the runs become one graph."""
