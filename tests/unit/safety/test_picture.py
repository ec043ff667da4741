"""Pictures from outside: kinds, sizes, damage, and base64."""

from base64 import b64encode, urlsafe_b64encode

import cv2
import numpy as np
import pytest

from livefuse.errors import RefusedError
from livefuse.safety.intern import decode_picture, is_inline_picture
from livefuse.safety.picture import MAX_PICTURE_BYTES, MAX_SIDE_PX, measure_picture, read_picture


def encode(suffix, width=96, height=80, options=()):
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    bgr = np.stack([x % 256, y % 256, (x + y) % 256], axis=2).astype(np.uint8)
    done, data = cv2.imencode(suffix, bgr, list(options))
    assert done
    return data.tobytes()


KINDS = {
    "png": encode(".png"),
    "jpeg": encode(".jpg"),
    "progressive": encode(".jpg", options=(cv2.IMWRITE_JPEG_PROGRESSIVE, 1)),
    "webp": encode(".webp", options=(cv2.IMWRITE_WEBP_QUALITY, 80)),
    "webp lossless": encode(".webp", options=(cv2.IMWRITE_WEBP_QUALITY, 101)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_measured_and_read(kind):
    data = KINDS[kind]
    assert measure_picture(data) == (96, 80)
    rgb = read_picture(data)
    assert rgb.shape == (80, 96, 3)
    assert rgb.dtype == np.uint8
    red, green, blue = rgb[20, 70].tolist()
    assert abs(red - 90) < 12
    assert abs(green - 20) < 12
    assert abs(blue - 70) < 12


@pytest.mark.parametrize("kind", KINDS)
def test_half_a_picture_never_passes_for_a_whole_one_unseen(kind):
    for length in (0, 4, 11, 20, 30):
        with pytest.raises(RefusedError):
            read_picture(KINDS[kind][:length])


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_picture_is_refused_and_nobody_prints(kind, capfd):
    data = KINDS[kind]
    with pytest.raises(RefusedError, match="damaged"):
        read_picture(data[: len(data) * 2 // 3])
    if kind == "png":
        with pytest.raises(RefusedError, match="damaged"):
            read_picture(data[:-30] + b"\x00" + data[-29:])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("data", [b"", b"GIF89a" + b"\0" * 90, b"<svg/>", b"BM" + b"\0" * 90])
def test_other_files_are_no_pictures(data):
    assert measure_picture(data) is None
    with pytest.raises(RefusedError, match="PNG, JPEG or WebP"):
        read_picture(data)


def test_a_bomb_is_refused_by_its_header_alone():
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (60_000).to_bytes(4, "big") * 2
    with pytest.raises(RefusedError, match="60000 x 60000"):
        read_picture(header)
    with pytest.raises(RefusedError, match="96 x 63"):
        read_picture(encode(".png", height=63))
    with pytest.raises(RefusedError, match="17 MiB"):
        read_picture(bytes(MAX_PICTURE_BYTES + 2**20))


def test_large_pictures_are_reduced():
    rgb = read_picture(encode(".jpg", 3000, 1500))
    assert rgb.shape == (MAX_SIDE_PX // 2, MAX_SIDE_PX, 3)


def test_a_picture_that_lies_on_its_side_is_turned():
    """Phones write how they were held."""
    plain = encode(".jpg", 96, 80)
    exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
    marker = b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif
    assert read_picture(plain[:2] + marker + plain[2:]).shape == (96, 80, 3)


@pytest.mark.parametrize(
    "text",
    [
        b64encode(KINDS["png"]).decode(),
        "data:image/png;base64," + b64encode(KINDS["png"]).decode(),
        "data:image/jpeg;base64," + urlsafe_b64encode(KINDS["png"]).decode().rstrip("="),
        "\n".join(b64encode(KINDS["png"]).decode()[i : i + 76] for i in range(0, 10_000, 76)),
    ],
)
def test_base64_of_any_dress_is_decoded(text):
    """R5"""
    assert is_inline_picture(text)
    assert decode_picture(text) == KINDS["png"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("data:text/html;base64,AAAA", "data:image/png"),
        ("data:image/png,AAAA", "data:image/png"),
        ("data:image/png;base64", "data:image/png"),
        ("not base64 at all!" * 20, "not base64"),
        (b64encode(b"GIF89a" * 30).decode(), "no PNG"),
        ("A" * (MAX_PICTURE_BYTES * 4 // 3 + 8), "16 MiB"),
    ],
)
def test_what_is_no_picture_is_refused(text, words):
    with pytest.raises(RefusedError, match=words):
        decode_picture(text)


@pytest.mark.parametrize("text", ["", "face_0123456789ab", "avatar:fox", "Anna Berger"])
def test_references_are_no_pictures(text):
    assert not is_inline_picture(text)
