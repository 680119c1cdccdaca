"""Passes over the finished graph: folded batch norms and fused operators."""
