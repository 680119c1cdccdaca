"""Replay a captured program beside its model, at sizes and values that the capture never used."""
