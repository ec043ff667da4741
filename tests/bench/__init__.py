"""Figures: livefuse against its peers, each pair measured alternately in one run."""
