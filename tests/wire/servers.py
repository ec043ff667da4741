"""Real peers for the wire tests, on loopback and on free ports: nginx-rtmp, GstRtspServer, ffmpeg.

Each is a child process that is started in `with`, has its log in a temporary folder, is ready when
its port answers, and is ended by its own pid. `stop` and `start` are a restart on the same port,
`pause` and `resume` (SIGSTOP, SIGCONT) are a peer that stalls.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from tests.measure import Recording, record

if TYPE_CHECKING:
    from collections.abc import Callable

HOST = "127.0.0.1"
SYSTEM_PYTHON = "/usr/bin/python3"
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin", "/sbin"])
_RTMP_MODULES = [
    Path("/usr/lib/nginx/modules/ngx_rtmp_module.so"),
    Path("/usr/share/nginx/modules/ngx_rtmp_module.so"),
]
_RTSP_SCRIPT = Path(__file__).with_name("rtsp_server.py")


def find_program(name: str) -> str | None:
    """Return the full path of a program, looked for in the system's folders too."""
    return shutil.which(name, path=_PATH)


def _find_rtmp_module() -> Path | None:
    return next((path for path in _RTMP_MODULES if path.exists()), None)


@cache
def _has_gst_rtsp_server() -> bool:
    code = (
        "import gi; gi.require_version('GstRtspServer', '1.0'); import gi.repository.GstRtspServer"
    )
    try:
        return not subprocess.run(
            [SYSTEM_PYTHON, "-c", code], capture_output=True, timeout=20, check=False
        ).returncode
    except OSError:
        return False


_SPECIAL: dict[str, Callable[[], object]] = {
    "nginx-rtmp": _find_rtmp_module,
    "gst-rtsp-server": _has_gst_rtsp_server,
}


def is_available(name: str) -> bool:
    """Tell whether a program, `nginx-rtmp` or `gst-rtsp-server` is on this machine."""
    return bool(_SPECIAL[name]() if name in _SPECIAL else find_program(name))


def require(*programs: str) -> None:
    """Skip the test with a clear reason unless all `programs` are on this machine."""
    missing = [name for name in programs if not is_available(name)]
    if missing:
        pytest.skip(f"not on this machine: {', '.join(missing)} (scripts/test says how to get it)")


def find_free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """Return a port of the loopback interface that nobody listens on."""
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.bind((HOST, 0))
        return int(sock.getsockname()[1])


def wait_until(condition: Callable[[], object], timeout_s: float, what: str = "condition") -> None:
    """Poll `condition` until it is true; fail the test after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"no {what} within {timeout_s} s")
        time.sleep(0.01)


def answers(port: int) -> bool:
    """Tell whether somebody accepts connections on `port`."""
    try:
        with socket.create_connection((HOST, port), timeout=0.5):
            return True
    except OSError:
        return False


class BlackHole:
    """A port that answers nothing at all, as one behind a firewall that drops what comes.

    Its queue of connections is full and nobody takes from it: the system ignores all that follow.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server((HOST, 0), backlog=0)
        self.port = int(self._listener.getsockname()[1])
        self._queued: list[socket.socket] = []

    def __enter__(self) -> Self:
        for _ in range(4):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex((HOST, self.port))
            self._queued.append(sock)
        return self

    def __exit__(self, *_: object) -> None:
        for sock in (*self._queued, self._listener):
            sock.close()


class ChildServer:
    """A child process with a port and a log. Subclasses say how it is called."""

    start_s = 15.0
    """How long it may take to come up."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="livefuse-peer-"))
        self.port = find_free_port()
        self.log_path = self.folder / "log.txt"
        self.process: subprocess.Popen[bytes] | None = None
        self._paused = False

    def command(self) -> list[str]:
        """Return the command line."""
        raise RuntimeError("a subclass says")

    def is_ready(self) -> bool:
        """Tell whether clients can come."""
        return answers(self.port)

    def start(self) -> Self:
        """Start the process and wait until it is ready."""
        assert self.process is None, "it runs already"
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )
        deadline = time.monotonic() + self.start_s
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                pytest.fail(f"{type(self).__name__} did not come up:\n{self.read_log()[-2000:]}")
            time.sleep(0.01)
        return self

    def stop(self) -> None:
        """End the process, by its pid; twice is once."""
        process, self.process = self.process, None
        if process is None:
            return
        if self._paused:
            process.send_signal(signal.SIGCONT)
            self._paused = False
        process.terminate()
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)

    def pause(self) -> None:
        """Stall: the process is stopped, its connections stay open."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        self._paused = True

    def resume(self) -> None:
        """End the stall."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)
        self._paused = False

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self.process is not None and self.process.poll() is None

    def read_log(self) -> str:
        """Return what the process wrote."""
        return self.log_path.read_text("utf-8", "replace") if self.log_path.exists() else ""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


_NGINX_CONF = """
load_module {module};
daemon off; master_process off; worker_processes 1;
pid {folder}/nginx.pid; error_log stderr info;
events {{ worker_connections 256; }}
rtmp {{
  server {{
    listen {host}:{port}; chunk_size 4096; ping 30s;
    application live {{
      live on; wait_key off; interleave on; drop_idle_publisher {idle_s}s;
      {record}
      {meta}
      on_publish http://{host}:{http_port}/gate;
      allow publish 127.0.0.1; deny publish all;
    }}
  }}
}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen {host}:{http_port}; location /stat {{ rtmp_stat all; }}
    location /gate {{ if (-f {folder}/closed) {{ return 403; }} return 204; }} }}
}}
"""


class NginxRtmp(ChildServer):
    """An RTMP server with the application `live`.

    With `is_recording` every published stream is also written, as the server got it, to
    `recording_path(key)`. `idle_s`: after that long without data a publisher is thrown out.
    With `copies_metadata` it hands on what a publisher says, else a choice of its own.
    While `closed_names` is there no name is given out, as while an old session lingers.
    """

    def __init__(
        self, *, is_recording: bool = False, idle_s: int = 10, copies_metadata: bool = False
    ) -> None:
        require("nginx", "nginx-rtmp")
        super().__init__()
        self.http_port = find_free_port()
        self._is_recording = is_recording
        self._copies_metadata = copies_metadata
        self._idle_s = idle_s
        self.closed_names = self.folder / "closed"

    def url(self, key: str = "stream") -> str:
        """Return the URL to push to or read from."""
        return f"rtmp://{HOST}:{self.port}/live/{key}"

    def command(self) -> list[str]:
        """Return the command line; writes the configuration."""
        record_lines = "record all; record_unique off;"
        conf = self.folder / "nginx.conf"
        conf.write_text(
            _NGINX_CONF.format(
                module=_find_rtmp_module(),
                folder=self.folder,
                host=HOST,
                port=self.port,
                http_port=self.http_port,
                idle_s=self._idle_s,
                meta="meta copy;" if self._copies_metadata else "",
                record=f"{record_lines} record_path {self.folder};" if self._is_recording else "",
            )
        )
        return [find_program("nginx") or "nginx", "-p", str(self.folder), "-c", str(conf)]

    def is_ready(self) -> bool:
        """Tell whether both ports answer."""
        return answers(self.port) and answers(self.http_port)

    def recording_path(self, key: str = "stream") -> Path:
        """Return the FLV file of what was published as `key`."""
        return self.folder / f"{key}.flv"

    def read_stat(self, timeout_s: float = 5.0) -> str:
        """Return the XML of the statistics page."""
        url = f"http://{HOST}:{self.http_port}/stat"
        with urllib.request.urlopen(url, timeout=timeout_s) as response:
            return str(response.read().decode())

    def count_bytes_in(self, key: str = "stream") -> int:
        """Return how many bytes the stream `key` brought so far; 0 when nobody publishes it."""
        for stream in re.findall(r"<stream>.*?</stream>", self.read_stat(), re.DOTALL):
            if f"<name>{key}</name>" in stream:
                return int(re.findall(r"<bytes_in>(\d+)</bytes_in>", stream)[0])
        return 0

    def is_publishing(self, key: str = "stream") -> bool:
        """Tell whether somebody publishes `key` now."""
        stat = self.read_stat()
        found = re.search(rf"<stream>\s*<name>{re.escape(key)}</name>.*?</stream>", stat, re.DOTALL)
        return found is not None and "<publishing/>" in found.group(0)


class RtspServer(ChildServer):
    """GstRtspServer serving an MP4 (h264, aac) at `.url`; each client starts at its first frame.

    With `is_looping` the file is repeated for ten minutes (its counter starts again each time).
    With `user` and `password` it asks for basic authentication; `.url` then holds them,
    `.open_url` does not. Any other path is a 404.
    """

    def __init__(
        self,
        path: Path,
        *,
        is_looping: bool = False,
        user: str = "",
        password: str = "",
        mount: str = "stream",
    ) -> None:
        require("gst-rtsp-server", "ffmpeg")
        super().__init__()
        self.user, self.password, self.mount = user, password, mount
        self._path = _repeat(path, self.folder / "looped.mp4") if is_looping else path.resolve()

    @property
    def open_url(self) -> str:
        """The URL without user and password."""
        return f"rtsp://{HOST}:{self.port}/{self.mount}"

    @property
    def url(self) -> str:
        """The URL, with user and password when there are any."""
        if not self.user:
            return self.open_url
        return self.open_url.replace("://", f"://{self.user}:{self.password}@")

    def command(self) -> list[str]:
        """Return the command line."""
        arguments = [HOST, str(self.port), self.mount, str(self._path), self.user, self.password]
        return [SYSTEM_PYTHON, str(_RTSP_SCRIPT), *arguments]


def _repeat(path: Path, target: Path, seconds: float = 600.0) -> Path:
    """Write `path` again and again, without encoding, until it is `seconds` long."""
    command = [find_program("ffmpeg") or "ffmpeg", "-v", "error", "-stream_loop", "-1"]
    command += ["-i", str(path), "-t", str(seconds), "-c", "copy", str(target)]
    subprocess.run(command, check=True, timeout=60)
    return target


class Push(ChildServer):
    """ffmpeg pushing a file in real time, as OBS would; it ends with the file, or by `stop`."""

    def __init__(
        self, path: Path, url: str, *, is_looping: bool = False, form: str = "flv"
    ) -> None:
        require("ffmpeg")
        super().__init__()
        self._path, self._url, self._is_looping, self._form = path, url, is_looping, form

    def command(self) -> list[str]:
        """Return the command line."""
        loop = ["-stream_loop", "-1"] if self._is_looping else []
        command = [find_program("ffmpeg") or "ffmpeg", "-nostdin", "-v", "warning", "-re", *loop]
        return [*command, "-i", str(self._path), "-c", "copy", "-f", self._form, self._url]

    def is_ready(self) -> bool:
        """It has no port: ready at once."""
        return True

    def wait(self, timeout_s: float) -> int:
        """Wait for the end of the file; return ffmpeg's exit code."""
        assert self.process is not None
        return self.process.wait(timeout_s)


def push_rtmp(path: Path, url: str, *, is_looping: bool = False) -> Push:
    """Return a push of `path` to `url`, for `with`."""
    return Push(path, url, is_looping=is_looping)


def record_rtmp(
    url: str, *, frames: int | None = None, seconds: float | None = None, timeout_s: float = 20.0
) -> Recording:
    """Read a live stream (RTMP, HTTP-FLV, MPEG-TS, RTSP) as a low-latency player does."""
    return record(url, frames=frames, seconds=seconds, timeout_s=timeout_s)


record_flv = record_rtmp


class BackgroundRecording:
    """`record` in a thread, for a reader that must be there before the publisher comes."""

    def __init__(self, url: str, **options: float | None) -> None:
        self._result: Recording | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, args=(url, options), name="livefuse-test-recording", daemon=True
        )
        self._thread.start()

    def _run(self, url: str, options: dict[str, float | None]) -> None:
        try:
            self._result = record_rtmp(url, **options)  # type: ignore[arg-type] # passed on as given
        except Exception as error:  # noqa: BLE001 - told to the test in `result`
            self._error = error

    def result(self, timeout_s: float = 30.0) -> Recording:
        """Return what was read; raises what the reader raised."""
        self._thread.join(timeout_s)
        if self._error is not None:
            raise self._error
        if self._result is None:
            pytest.fail(f"the reader did not end within {timeout_s} s")
        return self._result
