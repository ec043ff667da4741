"""A simulation of a 30 fps source on a machine that others use too: how controllers compare."""
