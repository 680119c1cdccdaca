"""Explore the paths of a model: traces at several sizes, guards that fork, one program for all."""
