"""Facts to pixels: what covers or changes a face, worked in the planes around it only."""
