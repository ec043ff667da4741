"""A camera: RTSP, live, each picture at its own moment of the machine's monotonic clock.

camera.py HOST PORT MOUNT FILE EPOCH_NS. Runs under the system's Python, which has GStreamer's
bindings. Picture k of the line is due at EPOCH_NS + k / fps, whenever this process was started and
whoever reads: so a counter in the pictures tells when each was taken. FILE is a pickle of
`peers.Film`'s fields, played round and round.
"""

import contextlib
import pathlib
import pickle
import sys
import threading
import time

import gi  # type: ignore[import-not-found,unused-ignore] # the system's Python has it

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # type: ignore[import-not-found,unused-ignore] # noqa: E402 - after the versions

LAUNCH = (
    "( appsrc name=video is-live=true format=time block=false max-bytes=4000000 "
    "caps=video/x-h264,stream-format=byte-stream,alignment=au,framerate={fps}/1 "
    "! h264parse config-interval=1 "
    "! rtph264pay name=pay0 pt=96 aggregate-mode=zero-latency config-interval=1 "
    "appsrc name=audio is-live=true format=time block=false max-bytes=400000 "
    "caps=audio/mpeg,mpegversion=4,stream-format=raw,channels=1,rate={rate},"
    "codec_data=(buffer){asc} "
    "! rtpmp4gpay name=pay1 pt=97 )"
)
MOST_LATE_NS = 1_000_000_000


class Shooter:
    """Pushes one client's pictures and sound when they are due, until the client has gone."""

    def __init__(self, film, epoch_ns, element):
        self.film, self.epoch_ns, self.element = film, epoch_ns, element
        self.sources = [element.get_by_name(name) for name in ("video", "audio")]
        self.steps_ns = (1e9 / film["fps"], 1024e9 / film["rate"])
        self.is_over = False
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        origin_ns = None  # where on the line this client's time begins
        while not self.is_over:
            indexes = self.find_start()
            if origin_ns is None:
                origin_ns = self.to_ns(0, indexes[0]) - self.read_running_ns()
            self.play(indexes, origin_ns)

    def read_running_ns(self):
        clock = self.sources[0].get_clock()
        return clock.get_time() - self.sources[0].get_base_time() if clock else 0

    def find_start(self):
        """Return the next keyframe from now on, and the sound that goes with it."""
        now_ns = time.monotonic_ns() - self.epoch_ns
        gop_ns = self.film["gop"] * self.steps_ns[0]
        video = int(now_ns / gop_ns + 1) * self.film["gop"]
        return [video, int(video * self.steps_ns[0] / self.steps_ns[1]) + 1]

    def to_ns(self, kind, index):
        return int(index * self.steps_ns[kind])

    def play(self, indexes, origin_ns):
        while not self.is_over:
            kind = min((0, 1), key=lambda kind: self.to_ns(kind, indexes[kind]))
            due_ns = self.to_ns(kind, indexes[kind])
            late_ns = time.monotonic_ns() - self.epoch_ns - due_ns
            if late_ns > MOST_LATE_NS:
                return  # this process was stopped: what was missed was never seen
            if late_ns < 0:
                time.sleep(-late_ns / 1e9)
            units = self.film["units"][kind]
            self.push(kind, units[indexes[kind] % len(units)], max(due_ns - origin_ns, 0))
            indexes[kind] += 1

    def push(self, kind, data, pts):
        buffer = Gst.Buffer.new_wrapped(data)
        buffer.pts = buffer.dts = pts
        buffer.duration = int(self.steps_ns[kind])
        if self.sources[kind].emit("push-buffer", buffer) != Gst.FlowReturn.OK:
            self.is_over = True


def main():
    host, port, mount, path, epoch_ns = sys.argv[1:]
    film = pickle.loads(pathlib.Path(path).read_bytes())
    Gst.init(None)
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(LAUNCH.format(fps=film["fps"], rate=film["rate"], asc=film["asc"]))
    factory.set_shared(False)

    def configure(_factory, media):
        shooter = Shooter(film, int(epoch_ns), media.get_element())
        media.connect("unprepared", lambda _media: setattr(shooter, "is_over", True))

    factory.connect("media-configure", configure)
    server = GstRtspServer.RTSPServer()
    server.set_address(host)
    server.set_service(port)
    server.get_mount_points().add_factory(f"/{mount}", factory)
    if not server.attach(None):
        sys.exit(f"cannot listen on {host}:{port}")
    with contextlib.suppress(KeyboardInterrupt):
        GLib.MainLoop().run()


if __name__ == "__main__":
    main()
