"""The token's JSON Schema, for clients in any language."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from livefuse.token.extensions import EXTENSIONS, FOREIGN_PREFIX, MAX_EXTENSIONS
from livefuse.token.operations import OPERATIONS
from livefuse.token.token import Token

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def create_token_schema() -> dict[str, Any]:
    """Return the token's JSON Schema (2020-12) as plain values.

    What a schema cannot say (the order of operations, the weight) `check_token` says in words.
    """
    kinds = [Token, *EXTENSIONS.values()]
    references, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    for definition in definitions.values():
        # A docstring's first paragraphs are for readers of either kind; what is raised is not.
        words = definition.get("description", "").partition("\n\nRaises:")[0]
        definition["description"] = " ".join(words.replace("`", "").split())
    token = definitions["Token"]["properties"]
    token["operations"]["items"] = {"enum": list(OPERATIONS)}
    token["operations"]["uniqueItems"] = True
    token["extensions"] |= {
        "properties": dict(zip(EXTENSIONS, references[1:], strict=True)),
        "patternProperties": {f"^{FOREIGN_PREFIX}": {}},
        "additionalProperties": False,
        "maxProperties": MAX_EXTENSIONS,
    }
    schema = {"$schema": DIALECT, "title": "livefuse token", **references[0], "$defs": definitions}
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
    return plain
