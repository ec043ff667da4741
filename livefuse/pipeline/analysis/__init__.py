"""Reads pixels, writes facts: where faces are (detect) and where they went (track, smooth)."""
