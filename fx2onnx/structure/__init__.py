"""The structure of a program: joined branches, rolled loops and repeated blocks."""
