"""What jobs of others may read and where they may send: a key is no way into the network (SSRF)."""

import socket

import msgspec
import pytest

from livefuse.config import AccessConfig, Config
from livefuse.control.access import Access, settle_access
from livefuse.errors import ConfigError, IngestConnectError, PublishConnectError, RefusedError

SECRET = "s3cr3tk3yofmine"
NAMES = {"cam.example": ["198.41.0.4"], "inside.example": ["192.168.7.7"]}


def resolve(host):
    if host not in NAMES:
        raise socket.gaierror("no such name")
    return NAMES[host]


@pytest.fixture
def media(tmp_path):
    folder = tmp_path / "media"
    folder.mkdir()
    (folder / "clip.mp4").write_bytes(b"x")
    (tmp_path / "secret.mp4").write_bytes(b"x")
    (folder / "link.mp4").symlink_to(tmp_path / "secret.mp4")
    (folder / "inner.mp4").symlink_to(folder / "clip.mp4")
    return folder


@pytest.fixture
def access(media):
    return Access(AccessConfig(restrict="on", media_folders=(str(media),)), resolve)


@pytest.mark.parametrize(
    "url",
    [
        "rtsp://cam.example/live", "rtsps://cam.example/live", "https://cam.example/x.m3u8",
        "hls://cam.example/x.m3u8", "rtmp://198.41.0.4/app/key", "whip:", "demo:",
        "test:?size=160x120", "listen:rtmp://127.0.0.1:1935/app/key",
    ],
)  # fmt: skip
def test_what_is_meant_to_be_read_is(access, url):
    assert access.check_source(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/", "http://127.0.0.1:8090/v1/jobs",
        "http://localhost.example@127.1/", "rtsp://2130706433/", "rtmp://[::ffff:a9fe:a9fe]/a/b",
        "hls://0x7f000001/x.m3u8", "https://inside.example/", "rtsp://0/", "RTSP://10.0.0.1/x",
        "udp://@:5000", "tcp://cam.example:80", "srt://cam.example:9000", "camera:0",
        "camera:/dev/video0", "gopher://cam.example/", "ftp://cam.example/x",
        f"rtsp://u:{SECRET}@10.0.0.1/x?k={SECRET}", f"nix://u:{SECRET}@x/{SECRET}",
    ],
)  # fmt: skip
def test_what_is_not_is_refused_without_a_secret(access, url):
    """C76: what is wrong is said, not what was in the URL."""
    with pytest.raises(RefusedError) as caught:
        access.check_source(url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "file:///etc/passwd", "../secret.mp4", "{media}/../secret.mp4",
        "{media}/link.mp4", "file://{media}/link.mp4", "{media}", "replay:/etc/passwd",
        "/proc/self/environ", "/dev/stdin", "concat:/etc/passwd|/etc/hosts",
        "async:http://169.254.169.254/", "subfile,,start,0,end,9,,:/etc/passwd",
        "data:text/plain,x", "http:/169.254.169.254/", "~/x.mp4",
    ],
)  # fmt: skip
def test_files_elsewhere_are_refused_whether_or_not_they_are_there(access, media, path):
    with pytest.raises(RefusedError):
        access.check_source(path.format(media=media))


def test_files_of_the_folder_are_read_by_their_whole_path(access, media):
    whole = str(media / "clip.mp4")
    for path in (whole, f"file://{whole}", f"{media}/./x/../clip.mp4", f"{media}/inner.mp4"):
        assert access.check_source(path) == whole


def test_absent_files_of_the_folder_are_said_to_be(access, media):
    with pytest.raises(ConfigError, match="no such file"):
        access.check_source(f"{media}/nix.mp4")
    with pytest.raises(ConfigError):
        access.check_source("a\x00b")


def test_targets(access):
    for url in ("rtmp://cam.example/app/key", "rtmps://cam.example/app/key", "x.mp4"):
        access.check_target(url)
    for url in (
        f"rtmp://127.0.0.1/app/{SECRET}", f"rtmp://inside.example/app/{SECRET}", "virtualcam:",
        f"http://cam.example/{SECRET}", f"rtmp:///app/{SECRET}",
    ):  # fmt: skip
        with pytest.raises(RefusedError) as caught:
            access.check_target(url)
        assert SECRET not in str(caught.value)


def test_who_cannot_be_found_is_no_refusal(access):
    with pytest.raises(IngestConnectError):
        access.check_source("rtsp://gone.example/x")
    with pytest.raises(PublishConnectError):
        access.check_target("rtmp://gone.example/app/key")


def test_a_name_that_points_elsewhere_by_the_start_is_refused(media):
    """DNS rebinding, the slow kind: submitted and judged, then moved, then started."""
    now = {"cam.example": ["198.41.0.4"]}
    access = Access(AccessConfig(restrict="on"), now.__getitem__)
    assert access.check_source("rtsp://cam.example/live")
    now["cam.example"] = ["169.254.169.254"]
    with pytest.raises(RefusedError):
        access.check_spec("rtsp://cam.example/live", ())


def test_no_folder_means_no_files(media):
    with pytest.raises(RefusedError):
        Access(AccessConfig(restrict="on"), resolve).check_source(str(media / "clip.mp4"))


def test_the_owner_is_not_restricted():
    for restrict in ("auto", "off"):
        access = Access(AccessConfig(restrict=restrict), resolve)
        assert access.check_source("http://127.0.0.1/") == "http://127.0.0.1/"
        access.check_target("rtmp://10.0.0.1/a/b")


def test_auto_is_on_where_others_ask():
    assert settle_access(Config(), is_shared=True).access.restrict == "on"
    assert settle_access(Config(), is_shared=False).access.restrict == "off"
    said = msgspec.structs.replace(Config(), access=AccessConfig(restrict="off"))
    assert settle_access(said, is_shared=True).access.restrict == "off"


@pytest.mark.parametrize(
    "url",
    [
        "listen:rtmp://0.0.0.0:1935/live/k",
        "listen:rtmp://127.0.0.1:22/live/k",
        "listen:rtmp://169.254.1.1:1935/live/k",
        "listen:rtmp://localhost:1935/live/k",
    ],
)
def test_jobs_of_others_listen_only_where_that_is_said(access, url):
    with pytest.raises(RefusedError, match="may not listen there"):
        access.check_source(url)


def test_on_this_machine_jobs_may_listen(access):
    url = "listen:rtmp://127.0.0.1:1935/live/k"
    assert access.check_source(url) == url


def test_a_name_that_is_too_long_is_no_file(access, media):
    with pytest.raises(ConfigError, match="no such file"):
        access.check_source(str(media / ("A" * 300)))


@pytest.mark.parametrize(
    ("host", "asker", "allowed"),
    [
        # The one that it asks from, however it is written; this machine for who is on it.
        ("192.168.1.20", "192.168.1.20", True), ("::ffff:192.168.1.20", "192.168.1.20", True),
        ("fd00::7", "fd00::7", True), ("127.0.0.1", "127.0.0.1", True), ("::1", "127.0.0.1", True),
        ("127.0.0.2", "::1", True),
        # The internet.
        ("198.41.0.4", "192.168.1.20", True), ("2606:4700::1", "", True),
        # The network behind us, and this machine.
        ("192.168.1.21", "192.168.1.20", False), ("10.0.0.1", "127.0.0.1", False),
        ("127.0.0.1", "192.168.1.20", False), ("127.0.0.1", "", False), ("::1", "8.8.8.8", False),
        ("169.254.169.254", "8.8.8.8", False), ("::ffff:10.0.0.1", "8.8.8.8", False),
        ("64:ff9b::a00:1", "8.8.8.8", False), ("fd00::8", "fd00::7", False),
        # Nobody's, many's, and what has to be looked up.
        ("0.0.0.0", "0.0.0.0", False), ("255.255.255.255", "8.8.8.8", False),
        ("224.0.0.1", "224.0.0.1", False), ("ff02::1", "8.8.8.8", False), ("::", "::", False),
        ("fe80::1%eth0", "fe80::1", False), ("x.local", "8.8.8.8", False),
        ("cam.example", "8.8.8.8", False), ("2130706433", "127.0.0.1", False), ("", "", False),
    ],
)  # fmt: skip
def test_a_peer_of_webrtc_names_its_own_address_and_none_of_the_network_here(
    access, host, asker, allowed
):
    """Else its candidates had us send packets to whatever is behind us."""
    assert access.allows_candidate(host, asker) is allowed


def test_networks_of_webrtc_are_their_own():
    """Cameras that jobs may dial are no business of who merely watches."""
    wide = AccessConfig(restrict="on", networks=("10.0.0.0/8",), webrtc_networks=("10.9.0.0/16",))
    access = Access(wide, resolve)
    assert access.allows_candidate("10.9.1.1", "")
    assert not access.allows_candidate("10.1.1.1", "")
    assert not access.allows_candidate("198.41.0.4", "")
    everywhere = Access(AccessConfig(restrict="on", webrtc_networks=("any",)), resolve)
    assert everywhere.allows_candidate("10.1.1.1", "")
    assert not everywhere.allows_candidate("224.0.0.1", "")
    with pytest.raises(ConfigError, match="network"):
        Access(AccessConfig(webrtc_networks=("nowhere",)))
