"""Serve an MP4 over RTSP. Runs under the system's Python, which has GStreamer's bindings.

rtsp_server.py HOST PORT MOUNT FILE [USER PASSWORD]
"""

import sys

import gi  # type: ignore[import-not-found,unused-ignore] # the system's Python has it

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # type: ignore[import-not-found,unused-ignore] # noqa: E402 - after the versions

LAUNCH = (
    "( filesrc location={path} ! qtdemux name=d "
    "d.video_0 ! queue ! h264parse config-interval=1 "
    "! rtph264pay name=pay0 pt=96 aggregate-mode=zero-latency config-interval=1 "
    "d.audio_0 ! queue ! aacparse ! rtpmp4gpay name=pay1 pt=97 )"
)
LAUNCH_MUTE = LAUNCH.split("d.audio_0", maxsplit=1)[0] + ")"


def has_audio(path):
    gi.require_version("GstPbutils", "1.0")
    from gi.repository import GstPbutils

    info = GstPbutils.Discoverer.new(5 * Gst.SECOND).discover_uri(Gst.filename_to_uri(path))
    return bool(info.get_audio_streams())


def protect(server, factory, user, password):
    auth = GstRtspServer.RTSPAuth()
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "user")
    auth.add_basic(GstRtspServer.RTSPAuth.make_basic(user, password), token)
    server.set_auth(auth)
    permissions = GstRtspServer.RTSPPermissions()
    permissions.add_permission_for_role("user", "media.factory.access", True)
    permissions.add_permission_for_role("user", "media.factory.construct", True)
    factory.set_permissions(permissions)


def main():
    host, port, mount, path, user, password = (*sys.argv[1:], "", "")[:6]
    Gst.init(None)
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch((LAUNCH if has_audio(path) else LAUNCH_MUTE).format(path=path))
    factory.set_shared(False)
    server = GstRtspServer.RTSPServer()
    server.set_address(host)
    server.set_service(port)
    if user:
        protect(server, factory, user, password)
    server.get_mount_points().add_factory(f"/{mount}", factory)
    if not server.attach(None):
        sys.exit(f"cannot listen on {host}:{port}")
    GLib.MainLoop().run()


if __name__ == "__main__":
    main()
