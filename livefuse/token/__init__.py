"""The token: the immutable packet of state that goes with a frame. What to do, what was done.

It holds references, never pixels: `source_face` is an id in the face store, `target_face` a frame
handle. A change makes a new token; threads share one through a `TokenCell`, whose reference is
replaced whole, so nobody sees a half-applied change.

    operations   what can be done and in which order     parameters   how it is done
    extensions   other modalities                        token        the token itself, its log
    check        tokens from outside, patches            schema       the JSON Schema
    cell         one token, many threads                 store        many tokens, each for its time
"""

from livefuse.token.cell import TokenCell
from livefuse.token.check import PATCHABLE, check_token, merge_patch, parse_token, patch_token
from livefuse.token.extensions import EXTENSIONS, AudioSegment, ExpressionStrength, MouthShape
from livefuse.token.operations import (
    COVERING,
    GENERATING,
    HIDING,
    NEEDS,
    OPERATIONS,
    check_operations,
)
from livefuse.token.parameters import FailurePolicy, Parameters, Selector, Share
from livefuse.token.schema import create_token_schema
from livefuse.token.store import TokenStore
from livefuse.token.token import (
    MAX_BODY_BYTES,
    MAX_LOG_ENTRIES,
    MAX_TOKEN_BYTES,
    LogEntry,
    Token,
    create_token,
)

__all__ = [
    "COVERING",
    "EXTENSIONS",
    "GENERATING",
    "HIDING",
    "MAX_BODY_BYTES",
    "MAX_LOG_ENTRIES",
    "MAX_TOKEN_BYTES",
    "NEEDS",
    "OPERATIONS",
    "PATCHABLE",
    "AudioSegment",
    "ExpressionStrength",
    "FailurePolicy",
    "LogEntry",
    "MouthShape",
    "Parameters",
    "Selector",
    "Share",
    "Token",
    "TokenCell",
    "TokenStore",
    "check_operations",
    "check_token",
    "create_token",
    "create_token_schema",
    "merge_patch",
    "parse_token",
    "patch_token",
]
