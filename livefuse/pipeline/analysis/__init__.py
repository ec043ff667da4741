"""pipeline/analysis."""
