"""`livefuse doctor`: what this machine has, what is missing, and what to do about it.

A missing extra is a warning; only what stops the main job is a problem.
"""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from livefuse.control.api.server import bind_listener
from livefuse.control.console import make_one_line
from livefuse.control.doctor.check import Check, Level
from livefuse.control.doctor.extras import check_extras
from livefuse.control.doctor.packages import check_packages
from livefuse.errors import LivefuseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from livefuse.config import Config

__all__ = ["Check", "examine", "format_check"]

_LEAST_PYTHON: Final = (3, 11)
_RTMP_MODULE: Final = Path("/usr/lib/nginx/modules/ngx_rtmp_module.so")
_TESTS: Final = Path(__file__).parents[3] / "tests" / "wire"
"""Only a checkout has them: who installed a wheel is not told what they want."""
_LOOPBACK_CAMERAS: Final = Path("/sys/devices/virtual/video4linux")


def examine(config: Config, *, quick: bool = False) -> list[Check]:
    """Return all checks. One that fails itself is a problem line, not an exception.

    `quick` leaves out timing the steps, which takes some seconds.
    """
    parts: tuple[Callable[[Config], list[Check]], ...] = (
        _check_python,
        _check_codecs,
        _check_packages,
        _check_runtime,
        _check_models,
        _check_cameras,
        _check_virtual_camera,
        _check_extras,
        _check_safety,
        _check_programs,
        _check_address,
        _check_steps,
    )
    checks: list[Check] = []
    for part in parts[:-1] if quick else parts:
        try:
            checks += part(config)
        except LivefuseError as error:
            checks.append(Check("problem", _name(part), error.message, error.hint))
        except Exception as error:  # noqa: BLE001 - a broken library must not hide the other lines
            text = make_one_line(f"{type(error).__name__}: {error}")
            checks.append(Check("problem", _name(part), text, "run scripts/setup again"))
    return checks


def format_check(check: Check) -> str:
    """Return a check as a line."""
    cure = f": {check.cure}" if check.cure else ""
    return f"{check.level:<8} {check.name:<16} {check.text}{cure}"


def _name(part: Callable[[Config], list[Check]]) -> str:
    return part.__name__.removeprefix("_check_").replace("_", " ")


def _check_python(_config: Config) -> list[Check]:
    text = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info >= _LEAST_PYTHON:
        return [Check("ok", "python", text)]
    return [Check("problem", "python", text, "livefuse needs 3.11 or newer")]


def _check_codecs(config: Config) -> list[Check]:
    from livefuse.publish import encode, versions  # noqa: PLC0415 - loads FFmpeg

    usable = [c.encoder for c in encode.CANDIDATES if not encode.probe_candidate(c)]
    chosen = encode.find_candidate(config.encode).encoder
    ffmpeg = versions.get_ffmpeg_version()
    return [
        Check("ok", "av", f"{importlib.metadata.version('av')}, FFmpeg {ffmpeg}"),
        Check("ok", "encoders", f"{', '.join(usable)} (in use: {chosen})"),
    ]


def _check_packages(_config: Config) -> list[Check]:
    return check_packages()


def _check_runtime(config: Config) -> list[Check]:
    from livefuse.control.doctor.runtime import check_runtime  # noqa: PLC0415 - loads onnxruntime

    return check_runtime(config)


def _check_steps(config: Config) -> list[Check]:
    from livefuse.control.doctor.steps import check_steps  # noqa: PLC0415 - loads the pipeline

    return check_steps(config)


def _check_models(config: Config) -> list[Check]:
    from livefuse.runtime.registry import load_registry  # noqa: PLC0415 - not for every command

    registry = load_registry(config.models)
    checks: list[Check] = []
    for model in registry.list_models():
        if not (model.embedded or registry.is_present(model.name)):
            continue
        try:
            registry.verify_model(model.name)
            checks.append(Check("ok", "model", f"{model.name}, {model.licence}"))
        except LivefuseError as error:
            # A file that somebody brought stops only the jobs that want it.
            level: Level = "problem" if model.embedded else "warning"
            checks.append(Check(level, "model", error.message, error.hint))
    return checks


def _check_cameras(_config: Config) -> list[Check]:
    from livefuse.ingest.camera import list_cameras  # noqa: PLC0415 - loads FFmpeg

    names = [camera.name for camera in list_cameras()]
    if names:
        return [Check("ok", "cameras", ", ".join(names))]
    return [Check("warning", "cameras", "none found", "plug one in; streams and files need none")]


def _check_virtual_camera(_config: Config) -> list[Check]:
    name = "virtual camera"
    if _LOOPBACK_CAMERAS.is_dir() and any(_LOOPBACK_CAMERAS.iterdir()):
        return [Check("ok", name, "v4l2loopback is loaded")]
    cure = "for virtualcam: outputs, install v4l2loopback-dkms and run modprobe v4l2loopback"
    return [Check("warning", name, "v4l2loopback is not loaded", cure)]


def _check_extras(_config: Config) -> list[Check]:
    return check_extras()


def _check_safety(config: Config) -> list[Check]:
    from livefuse.control.doctor.safety import check_safety  # noqa: PLC0415 - loads cryptography

    return check_safety(config.safety)


def _check_programs(_config: Config) -> list[Check]:
    wanted = [("srt", "srt-live-transmit", "srt: inputs", "srt-tools")]
    if _TESTS.is_dir():
        wanted += [
            ("ffmpeg", "ffmpeg", "the wire tests", "ffmpeg"),
            ("gstreamer", "gst-launch-1.0", "the wire tests", "gstreamer1.0-tools"),
        ]
    checks = []
    for name, program, purpose, package in wanted:
        path = shutil.which(program)
        missing = f"for {purpose}, apt-get install {package}"
        checks.append(
            Check("ok", name, path)
            if path
            else Check("warning", name, f"{program} is not installed", missing)
        )
    if not _TESTS.is_dir():
        return checks
    if _RTMP_MODULE.exists():
        checks.append(Check("ok", "nginx-rtmp", str(_RTMP_MODULE)))
    else:
        cure = "for the wire tests, apt-get install nginx-light libnginx-mod-rtmp"
        checks.append(Check("warning", "nginx-rtmp", "not installed", cure))
    return checks


def _check_address(config: Config) -> list[Check]:
    with bind_listener(config.http.host, config.http.port) as listener:
        port = listener.getsockname()[1]
    text = f"{config.http.host}:{port} is free"
    if config.http.port in (0, port):
        return [Check("ok", "http", text)]
    return [Check("warning", "http", f"port {config.http.port} is taken, {text}")]
