"""looks."""
