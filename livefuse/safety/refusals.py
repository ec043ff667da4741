"""What is not made here: the likeness of people by their names. Each refusal is said and logged."""

from __future__ import annotations

import threading
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from livefuse.errors import ConfigError, RefusedError
from livefuse.safety.actor import get_actor
from livefuse.safety.folder import sign_file
from livefuse.safety.names import NameList, build_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from livefuse.config import RefuseConfig
    from livefuse.safety.audit import AuditLog

    Signature = tuple[int, int, int]

_LIST: Final = "data/public_figures.txt"
_MAX_FILE_BYTES: Final = 4 * 1024 * 1024
_MAX_LOGGED: Final = 200


class _Read(NamedTuple):
    """The lists as they were read, and what changes when a file of the operator's does."""

    signatures: tuple[Signature | None, ...]
    names: NameList
    denied: NameList


class Refusals:
    """Safe from any thread. The operator's files are read again when they have changed."""

    def __init__(self, config: RefuseConfig, audit: AuditLog | None = None) -> None:
        """Take the files' names; nothing is read yet. Without `audit` refusals are only said."""
        self._files = [Path(name).expanduser() if name else None for name in _list_files(config)]
        self._audit = audit
        self._lock = threading.Lock()
        self._read: _Read | None = None

    def check_text(self, text: str, what: str, *, job: str = "") -> None:
        """Refuse a text (a prompt, a face's name) that names somebody; `what` it is, in words.

        Raises:
            RefusedError: it does; the refusal is in the audit log.
            AuditError: it does, and that cannot be logged.
            ConfigError: a file of names cannot be read.
        """
        if not text:
            return
        lists = self._get_lists()
        if found := lists.denied.find(text):
            said, source = "somebody whose likeness is not made here", "deny_names"
        elif found := lists.names.find(text):
            said, source = "a public figure", "built in"
        else:
            return
        if self._audit is not None:
            facts = {
                "what": what,
                "text": text[:_MAX_LOGGED].encode("utf-8", "replace").decode(),
                "person": found.person,
                "name": found.alias,
                "list": source,
            }
            self._audit.append("refusal.prompt", who=get_actor(), job=job, facts=facts)
        raise RefusedError(
            f"{what} names {said}: {found.person}",
            hint="say what is to be seen, not whose face; an operator can except a name in the "
            "file of refuse.allow_names",
        )

    def check_texts(self, texts: Iterable[str], what: str, *, job: str = "") -> None:
        """Refuse as `check_text`, each of `texts`."""
        for text in texts:
            self.check_text(text, what, job=job)

    def _get_lists(self) -> _Read:
        signatures = tuple(sign_file(path) if path else None for path in self._files)
        with self._lock:
            if self._read is None or self._read.signatures != signatures:
                own, allowed = (_read_lines(path) for path in self._files)
                listed = resources.files("livefuse.safety").joinpath(_LIST).read_text("utf-8")
                characters = [line for line in listed.splitlines() if line.startswith("=")]
                excused = build_names([*allowed, *characters])
                self._read = _Read(
                    signatures,
                    _except(build_names(listed.splitlines()), excused),
                    _except(build_names([*own, *characters]), excused),
                )
            return self._read


def list_texts(values: object) -> list[str]:
    """Return every text in JSON-like `values`, keys aside: what a client wrote in free words."""
    if isinstance(values, str):
        return [values]
    if isinstance(values, dict):
        return [text for value in values.values() for text in list_texts(value)]
    if isinstance(values, list | tuple):
        return [text for value in values for text in list_texts(value)]
    if isinstance(values, msgspec.Struct):
        return list_texts(msgspec.structs.asdict(values))
    return []


def _list_files(config: RefuseConfig) -> tuple[str, str]:
    return config.deny_names, config.allow_names


def _read_lines(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
        if len(data) > _MAX_FILE_BYTES:
            raise ConfigError(f"the file of names {path} has more than 4 MiB", hint="split it")
        return data.decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigError(
            f"the file of names {path} cannot be read ({reason})",
            hint="check refuse.deny_names and refuse.allow_names",
        ) from None


def _except(names: NameList, excused: NameList) -> NameList:
    """Return `names` without those of `excused`: a person's first name stands for all of them."""
    allowed = set(excused.forms)
    whole = {
        found.person
        for form, found in names.forms.items()
        if form in allowed and found.alias == found.person
    }
    forms = {
        form: found
        for form, found in names.forms.items()
        if form not in allowed and found.person not in whole
    }
    return NameList(forms, names.innocent | excused.innocent, names.simplified)
