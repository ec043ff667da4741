"""Frame and token in, the same frame edited in place out. Pure, synchronous, no I/O once warm.

steps.py holds the order of the operations; analysis/ reads pixels, effects/ writes them.
"""
