"""From a module to one graph: torch.export, dynamic shapes, and what a capture cannot see."""
