"""`livefuse faces`: enroll a picture with its consent, show, list, revoke, remove, deny."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from livefuse.config import load_config
from livefuse.control.commands.run import ConfigFile, Settings  # noqa: TC001 - read at run time
from livefuse.control.console import complain, say
from livefuse.errors import ConfigError

if TYPE_CHECKING:
    from livefuse.safety.records import FaceRecord
    from livefuse.workers.face_desk import FaceDesk

Picture = Annotated[Path, Parameter(metavar="PICTURE", help="PNG, JPEG or WebP with one face.")]
SomePicture = Annotated[Path | None, Parameter(metavar="PICTURE", help="As for enroll.")]
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
Jobs = Annotated[
    list[str] | None,
    Parameter(
        name="--jobs",
        metavar="PATTERN",
        negative=(),
        help="The consent is for jobs with such ids only, like show-*; repeat it for more.",
    ),
]
EvidenceFile = Annotated[
    Path | None,
    Parameter(
        metavar="FILE", help="A signed form or a mail; only its SHA-256, name and size are kept."
    ),
]
Forget = Annotated[
    bool | None,
    Parameter(
        help="Keep what recognises the face and not the picture: no swap can show it then. "
        "Not said: safety.forget_picture.",
    ),
]
Live = Annotated[
    bool,
    Parameter(negative=(), help="Have the person before the camera of --from do some poses."),
]
Camera = Annotated[
    str, Parameter(name="--from", metavar="URL", help="The camera for --live: camera:, rtsp://...")
]
Mirrored = Annotated[
    bool, Parameter(negative=(), help="The camera of --from shows what a mirror would.")
]
Face = Annotated[str, Parameter(metavar="FACE", help="Its id or name.")]
ListThem = Annotated[bool, Parameter(name="--list", negative=(), help="List the denied faces.")]
RemoveOne = Annotated[
    str, Parameter(name="--remove", metavar="FACE", help="Deny this one no more: id or name.")
]


def add_commands(app: App) -> None:
    """Add the commands to `app`."""
    faces = App(name="faces", help="The faces that people agreed to lend.")
    faces.command(enroll)
    faces.command(list_faces, name="list")
    faces.command(show)
    faces.command(revoke)
    faces.command(remove)
    faces.command(deny)
    app.command(faces)


def enroll(  # noqa: PLR0913 - one parameter per option of the command line
    picture: Picture,
    /,
    *,
    consent: ConsentText,
    name: Name = "",
    jobs: Jobs = None,
    evidence: EvidenceFile = None,
    forget_picture: Forget = None,
    live: Live = False,
    source: Camera = "camera:",
    mirrored: Mirrored = False,
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Keep a picture, sealed, with the consent of the person it shows."""
    from livefuse.control import enrollment  # noqa: PLC0415 - loads OpenCV

    data = _read_picture(picture)
    desk = _open_desk(config, settings)
    terms = enrollment.create_terms(jobs or (), evidence, forget_picture=bool(forget_picture))
    if live:
        wish = enrollment.LiveWish(source, mirrored=mirrored)
        terms = enrollment.match_live(desk, data, consent, terms, wish)
    record = desk.enroll(data, consent, name, terms)
    say(
        f"enrolled {_tell_who(record)} for {record.consent.scope}, until "
        f"{record.consent.until[:10]}: {_tell_use(record)}"
    )


def list_faces(*, config: ConfigFile = None, settings: Settings = None) -> None:
    """List the enrolled faces (id, state, end, name, who agreed, to what) and the drawn ones."""
    desk = _open_desk(config, settings)
    now_epoch_s = desk.clock.epoch_s()
    records = desk.store.list_records()
    for record in records:
        state, until = record.get_state(now_epoch_s), (record.revoked or record.consent.until)[:10]
        who = f"{record.consent.who}: {record.consent.scope}"
        say(f"{record.face_id}  {state:<8} {until}  {record.name or '-':<16} {who}")
    for face_id in desk.store.list_damaged():
        say(f"{face_id}  damaged: remove it with  livefuse faces remove {face_id}")
    from livefuse.pipeline.effects.avatar import AVATAR_PREFIX, AVATARS  # noqa: PLC0415 - see above

    for name, avatar in AVATARS.items():
        names = f"{avatar.name_en}  {avatar.name_zh}"
        say(f"{AVATAR_PREFIX}{name:<16}  drawn, needs no consent  {names}")
    if not records:
        complain('nobody is enrolled: livefuse faces enroll PICTURE --consent "..."')


def show(face: Face, /, *, config: ConfigFile = None, settings: Settings = None) -> None:
    """Show all that is recorded of an enrolled face and of its consent."""
    from livefuse.control.enrollment import describe_face  # noqa: PLC0415 - loads much

    desk = _open_desk(config, settings)
    record = desk.store.get_record(face)
    for line in describe_face(record, desk.clock.epoch_s()):
        say(line)


def revoke(face: Face, /, *, config: ConfigFile = None, settings: Settings = None) -> None:
    """Take a consent back: the picture is deleted, running streams cover at once."""
    record = _open_desk(config, settings).store.revoke(face)
    say(f"revoked {_tell_who(record)}: its picture is deleted, its record stays as evidence")


def remove(face: Face, /, *, config: ConfigFile = None, settings: Settings = None) -> None:
    """Forget a face wholly, its record too."""
    say(f"removed {_open_desk(config, settings).store.remove(face)}")


def deny(
    picture: SomePicture = None,
    /,
    *,
    name: Name = "",
    listed: ListThem = False,
    removed: RemoveOne = "",
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Refuse the face in a picture, in every source picture from now on; running streams cover."""
    if [picture is not None, listed, bool(removed)].count(True) != 1:
        raise ConfigError(
            "deny takes one of a picture, --list and --remove",
            hint="write  livefuse faces deny PICTURE --name NAME",
        )
    desk = _open_desk(config, settings)
    if picture is not None:
        denied = desk.deny(_read_picture(picture), name or picture.stem)
        say(f"denied {denied.denied_id} {denied.name}: pictures that show this face are refused")
    elif removed:
        say(f"no longer denied: {desk.store.undeny(removed)}")
    else:
        records = desk.store.denied.list_records()
        for record in records:
            say(f"{record.denied_id}  {record.created[:10]}  {record.name}")
        if not records:
            complain("nobody is denied: livefuse faces deny PICTURE --name NAME")


def _open_desk(config: ConfigFile, settings: Settings) -> FaceDesk:
    tree = load_config(config, tuple(settings or ()))
    from livefuse.clock import SystemClock  # noqa: PLC0415 - not for every command
    from livefuse.workers.face_desk import FaceDesk  # noqa: PLC0415 - loads the pipeline

    return FaceDesk(tree, SystemClock())


def _tell_who(record: FaceRecord) -> str:
    name = f" {record.name}" if record.name else ""
    return f"{record.face_id}{name} ({record.consent.who})"


def _tell_use(record: FaceRecord) -> str:
    """Say what the face can be used for."""
    if record.has_picture:
        return f"use it with  --source-face {_quote(record.person)}"
    return (
        "its picture was not kept: it is known again (select=reference, blur_whom), no swap or "
        "puppet can show it"
    )


def _quote(name: str) -> str:
    return f'"{name}"' if " " in name else name


def _read_picture(path: Path) -> bytes:
    """Return the file's bytes, no more than a picture may have, and one."""
    from livefuse.safety.picture import MAX_PICTURE_BYTES  # noqa: PLC0415 - loads OpenCV

    try:
        with path.open("rb") as file:
            return file.read(MAX_PICTURE_BYTES + 1)
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ConfigError(
            f"cannot read the picture {path} ({reason})", hint="check its path"
        ) from None
