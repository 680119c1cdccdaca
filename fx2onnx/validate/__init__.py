"""Compare replays of a captured program with its model, at sizes and values that the capture never used."""
