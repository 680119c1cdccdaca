"""Replay a captured program and compare it with the model, at sizes and values that the capture never used."""
