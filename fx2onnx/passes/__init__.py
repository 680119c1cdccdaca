"""Passes on the finished graph: folded batch norms and fused operators."""
