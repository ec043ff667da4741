"""`livefuse faces`: enroll a picture with its consent, list, revoke, remove."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from livefuse.config import load_config
from livefuse.control.commands_run import ConfigFile, Settings  # noqa: TC001 - read at run time
from livefuse.control.console import complain, say
from livefuse.errors import ConfigError

if TYPE_CHECKING:
    from livefuse.safety.faces import FaceStore
    from livefuse.safety.records import FaceRecord

Picture = Annotated[Path, Parameter(metavar="PICTURE", help="PNG, JPEG or WebP with one face.")]
ConsentText = Annotated[
    str,
    Parameter(
        metavar="TEXT",
        help='"who, what for, until", like "Anna Berger, my live streams, 90d"; until is a date '
        "(YYYY-MM-DD) or a length (90d, 12w, 1y).",
    ),
]
Name = Annotated[
    str, Parameter(metavar="NAME", help="What to call the face in --source-face and people.")
]
Face = Annotated[str, Parameter(metavar="FACE", help="Its id or name.")]


def add_commands(app: App) -> None:
    """Add the commands to `app`."""
    faces = App(name="faces", help="The faces that people agreed to lend.")
    faces.command(enroll)
    faces.command(list_faces, name="list")
    faces.command(revoke)
    faces.command(remove)
    app.command(faces)


def enroll(
    picture: Picture,
    /,
    *,
    consent: ConsentText,
    name: Name = "",
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Keep a picture, sealed, with the consent of the person it shows."""
    from livefuse.safety.picture import MAX_PICTURE_BYTES  # noqa: PLC0415 - loads OpenCV

    data = _read_file(picture, MAX_PICTURE_BYTES + 1)
    tree = load_config(config, tuple(settings or ()))
    from livefuse.clock import SystemClock  # noqa: PLC0415 - not for every command
    from livefuse.runtime.session import SessionCache  # noqa: PLC0415 - loads onnxruntime
    from livefuse.safety.faces import FaceStore  # noqa: PLC0415 - loads OpenCV
    from livefuse.workers.face_reader import FaceReader  # noqa: PLC0415 - loads the pipeline

    clock = SystemClock()
    reader = FaceReader(tree, SessionCache(tree.models))
    store = FaceStore(tree.safety, clock, embedder=reader.embedder)
    record = store.enroll(data, consent, check=reader.check, name=name)
    say(
        f"enrolled {_tell_who(record)} for {record.consent.scope}, until "
        f"{record.consent.until[:10]}: use it with  --source-face {_quote(record.person)}"
    )


def list_faces(*, config: ConfigFile = None, settings: Settings = None) -> None:
    """List the enrolled faces (id, state, end, name, who agreed, to what) and the drawn ones."""
    store = _open_store(config, settings)
    from livefuse.clock import SystemClock  # noqa: PLC0415 - not for every command

    now_epoch_s = SystemClock().epoch_s()
    records = store.list_records()
    for record in records:
        state, until = record.get_state(now_epoch_s), (record.revoked or record.consent.until)[:10]
        who = f"{record.consent.who}: {record.consent.scope}"
        say(f"{record.face_id}  {state:<8} {until}  {record.name or '-':<16} {who}")
    for face_id in store.list_damaged():
        say(f"{face_id}  damaged: remove it with  livefuse faces remove {face_id}")
    from livefuse.pipeline.effects.avatar import AVATAR_PREFIX, AVATARS  # noqa: PLC0415 - see above

    for name, avatar in AVATARS.items():
        names = f"{avatar.name_en}  {avatar.name_zh}"
        say(f"{AVATAR_PREFIX}{name:<16}  drawn, needs no consent  {names}")
    if not records:
        complain('nobody is enrolled: livefuse faces enroll PICTURE --consent "..."')


def revoke(face: Face, /, *, config: ConfigFile = None, settings: Settings = None) -> None:
    """Take a consent back: the picture is deleted, running streams cover at once."""
    record = _open_store(config, settings).revoke(face)
    say(f"revoked {_tell_who(record)}: its picture is deleted, its record stays as evidence")


def remove(face: Face, /, *, config: ConfigFile = None, settings: Settings = None) -> None:
    """Forget a face wholly, its record too."""
    say(f"removed {_open_store(config, settings).remove(face)}")


def _open_store(config: ConfigFile, settings: Settings) -> FaceStore:
    tree = load_config(config, tuple(settings or ()))
    from livefuse.clock import SystemClock  # noqa: PLC0415 - not for every command
    from livefuse.safety.faces import FaceStore  # noqa: PLC0415 - loads OpenCV

    return FaceStore(tree.safety, SystemClock())


def _tell_who(record: FaceRecord) -> str:
    name = f" {record.name}" if record.name else ""
    return f"{record.face_id}{name} ({record.consent.who})"


def _quote(name: str) -> str:
    return f'"{name}"' if " " in name else name


def _read_file(path: Path, limit: int) -> bytes:
    """Return the file's bytes, at most `limit` of them."""
    try:
        with path.open("rb") as file:
            return file.read(limit)
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ConfigError(
            f"cannot read the picture {path} ({reason})", hint="check its path"
        ) from None
