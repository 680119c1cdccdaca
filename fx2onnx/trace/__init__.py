"""Run a model once and record each call of an operator as an event."""
