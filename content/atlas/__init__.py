"""The atlas: architectures as libraries list them, a module for each library, built from their configurations with random weights."""
