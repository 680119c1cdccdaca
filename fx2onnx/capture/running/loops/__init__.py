"""Loops of Python whose turns follow a moving size: found, counted in symbols, and rolled up into one call with a graph for a turn."""
