"""Is it right, how far off, and where the numbers diverge: questions asked of one model."""
