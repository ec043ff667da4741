"""Looks: named sets of beautify's parameters, as TOML files. The user's own folder comes first.

A look is expanded into a token's parameters at the edge; the pipeline only ever sees amounts.
"""

from livefuse.looks.library import Look, find_look, list_looks, load_look

__all__ = ["Look", "find_look", "list_looks", "load_look"]
