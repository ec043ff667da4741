"""pipeline/effects."""
