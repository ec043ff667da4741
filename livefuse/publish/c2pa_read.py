"""What a recording's C2PA signature says. Needs c2pa-python (`livefuse[c2pa]`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from livefuse.errors import ConfigError
from livefuse.publish.c2pa_child import MARK_LABEL
from livefuse.publish.recording_signer import is_installed

if TYPE_CHECKING:
    from pathlib import Path

C2paState = Literal["trusted", "valid", "invalid", "none"]


class C2paReport(NamedTuple):
    """What was found.

    trusted   unchanged since it was signed, by a chain that ends in the root that was given
    valid     unchanged since it was signed; by whom is for the reader to judge
    invalid   changed since, or the signature is wrong: `faults` has the codes of C2PA
    none      there is no signature: copying by FFmpeg, for one, takes it away

    `job` (8 hex digits) and `install_id` are those of livefuse's own marks, "" when it is not ours.
    """

    state: C2paState
    job: str = ""
    install_id: str = ""
    signer: str = ""
    faults: tuple[str, ...] = ()


def read_c2pa(path: Path, root: str = "") -> C2paReport:
    """Return what the signature of a file says; `root` is a certificate (PEM) to be trusted.

    Raises:
        ConfigError: c2pa-python is not installed, or the file is of no kind that can be signed.
        OSError: the file cannot be read.
    """
    if not is_installed():
        raise ConfigError(
            "C2PA signatures cannot be read: c2pa-python is not installed",
            hint="run  pip install 'livefuse[c2pa]'",
        )
    import c2pa  # noqa: PLC0415 - an extra, and 40 MB

    with path.open("rb"):
        pass  # what the system says of it is clearer than what the library says
    try:
        with _create_context(root) as context, c2pa.Reader(str(path), context=context) as reader:
            return _build_report(json.loads(reader.json()))
    except c2pa.C2paError.ManifestNotFound:
        return C2paReport("none")
    except c2pa.C2paError.NotSupported:
        raise ConfigError(
            f"{path.name} is of no kind that C2PA can sign", hint="it can be MP4"
        ) from None
    except c2pa.C2paError as error:
        return C2paReport("invalid", faults=(str(error).splitlines()[0][:200],))


def _create_context(root: str) -> Any:  # noqa: ANN401 - c2pa-python has no types
    import c2pa  # noqa: PLC0415 - as above

    trust = {"user_anchors": root} if root else {}
    settings = {"verify": {"verify_trust": bool(root), "remote_manifest_fetch": False}}
    return c2pa.Context(c2pa.Settings.from_dict(settings | ({"trust": trust} if trust else {})))


def _build_report(found: dict[str, Any]) -> C2paReport:
    manifest = found["manifests"][found["active_manifest"]]
    ours: dict[str, Any] = next(
        (a["data"] for a in manifest.get("assertions", ()) if a["label"] == MARK_LABEL), {}
    )
    results = found.get("validation_results", {}).get("activeManifest", {})
    faults = tuple(fault["code"] for fault in results.get("failure", ()))
    states: dict[str, C2paState] = {"Trusted": "trusted", "Valid": "valid"}
    return C2paReport(
        states.get(found.get("validation_state", ""), "invalid"),
        str(ours.get("job", "")),
        str(ours.get("install", "")),
        str(manifest.get("signature_info", {}).get("common_name", "")),
        faults,
    )
