"""The known errors, one module each: its first line is the title, the rest of its docstring says why. Not here: what reads them."""
