"""The figures that `--stats` leaves behind: what stands in them, and how they reach the disk."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from livefuse.errors import ConfigError

if TYPE_CHECKING:
    from livefuse.telemetry import Statistics


def merge_last(stats: Statistics, last: Statistics | None) -> Statistics:
    """Return final counts with the rates and connections of the moment before a wanted stop."""
    if last is None:
        return stats
    then = {_name(output): output for output in last.outputs}
    outputs = [
        {**now, **{key: was[key] for key in ("state", "connected")}}
        for now in stats.outputs
        if (was := then.get(_name(now), now))
    ]
    return msgspec.structs.replace(
        stats, fps_in=last.fps_in, fps_out=last.fps_out, faces=last.faces, outputs=outputs
    )


def _name(output: dict[str, Any]) -> str:
    """Two targets may look the same: what tells them apart is a secret. So the id comes first."""
    return str(output.get("id") or f"{output['kind']} {output['url']}")


def check_writable(path: Path, option: str = "--stats") -> None:
    """Try whether a file can be made where `path`, given by `option`, is to be.

    Raises:
        ConfigError: it cannot.
    """
    hint = f"choose another place for {option}"
    if path.is_dir():
        raise ConfigError(f"{path} is a folder", hint=hint)
    path = path.resolve()
    if _is_special(path):
        return
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
            pass
    except OSError as error:
        reason = error.strerror or "not writable"
        raise ConfigError(f"cannot write {path} ({reason})", hint=hint) from None


def write_atomically(path: Path, data: bytes, option: str = "--stats") -> None:
    """Put `data` at `path`, whole or not at all; a link or a device stays what it is.

    `option` is what `path` was given by.

    Raises:
        ConfigError: it cannot be written.
    """
    try:
        target = path.resolve()
        if _is_special(target):
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        raise ConfigError(
            f"cannot write {path} ({error.strerror})", hint=f"choose another place for {option}"
        ) from None


def _replace(path: Path, data: bytes) -> None:
    with tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        temporary = Path(file.name)
        try:
            file.write(data)
            file.flush()
            temporary.chmod(0o644)
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def _is_special(path: Path) -> bool:
    """Say whether it is a device or a pipe, such as /dev/stdout: written to, never replaced."""
    return path.exists() and not path.is_file()
