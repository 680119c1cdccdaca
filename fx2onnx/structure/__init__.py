"""Structure of a program: joined branches, rolled loops, repeated blocks."""
