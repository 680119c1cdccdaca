"""Shape functions: the sizes of an operator's results from those of its arguments, as integers and sympy expressions."""
