"""Pictures that come inline, as base64 or a data URL: taken in once at the edge, then an id."""

from __future__ import annotations

import binascii
import hashlib
from base64 import b64decode
from typing import TYPE_CHECKING, Final

from livefuse.errors import ConsentError, RefusedError
from livefuse.safety.picture import MAX_PICTURE_BYTES, measure_picture

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from livefuse.safety.faces import FaceStore

_DATA_URL: Final = "data:"
_CODED: Final = ";base64"
# A name or an id is shorter, a picture is longer.
_SHORTEST_PICTURE: Final = 129


def is_inline_picture(text: str) -> bool:
    """Say whether a client's `source_face` is a picture rather than a reference."""
    return text.startswith(_DATA_URL) or len(text) >= _SHORTEST_PICTURE


def decode_picture(text: str) -> bytes:
    """Return the picture's file that a data URL or bare base64 holds.

    Raises:
        RefusedError: it is neither, or too large, or not a picture.
    """
    head, comma, code = text.partition(",") if text.startswith(_DATA_URL) else ("", ",", text)
    if not comma or (head and not (head.startswith("data:image/") and head.endswith(_CODED))):
        raise RefusedError("this data URL is no picture", hint="write data:image/png;base64,...")
    code = "".join(code.split())
    if len(code) > MAX_PICTURE_BYTES * 4 // 3 + 4:
        raise RefusedError(
            f"the picture has more than {MAX_PICTURE_BYTES >> 20} MiB", hint="save it smaller"
        )
    try:
        # Some encoders leave the padding out, some write the URL-safe letters.
        padded = code.replace("-", "+").replace("_", "/") + "=" * (-len(code) % 4)
        data = b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        raise RefusedError("the picture is not base64", hint="send it whole") from None
    if measure_picture(data) is None:
        raise RefusedError("the base64 is no PNG, JPEG or WebP picture", hint="save it as one")
    return data


def intern_source(
    picture: str,
    store: FaceStore,
    *,
    consent: str = "",
    check: Callable[[NDArray[np.uint8]], None] | None = None,
) -> str:
    """Return the face id of an inline picture, for the token to hold in the picture's place.

    Raises:
        RefusedError, ConsentError, ConfigError: as `intern_picture`; or it is not base64.
    """
    return intern_picture(decode_picture(picture), store, consent=consent, check=check)


def intern_picture(
    data: bytes,
    store: FaceStore,
    *,
    consent: str = "",
    check: Callable[[NDArray[np.uint8]], None] | None = None,
    name: str = "",
) -> str:
    """Return the face id of a picture's file.

    A picture that is enrolled already gives its id, if its consent holds. Another one is enrolled
    with `consent` ("who, what for, until when") and `check` (see `FaceStore.enroll`); without
    them it is refused, and nothing of it is kept.

    Raises:
        RefusedError: it is no picture that can be used.
        ConsentError: nobody has consented, or no longer.
        ConfigError: the store cannot be written.
    """
    if consent and check is not None:
        return store.enroll(data, consent, check=check, name=name).face_id
    record = store.find_by_digest(hashlib.sha256(data).hexdigest())
    if record is None:
        raise ConsentError(
            "nobody has consented that this picture is used",
            hint="enroll it, or send the consent with it: who, what for, until when",
        )
    return store.check_consent(record.face_id).face_id
