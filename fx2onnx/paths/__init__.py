"""Explore the paths of a model: traces at several sizes, guards that fork, and one program for all."""
