"""Where an RTMP target is dialled, when the job is another's than the machine owner's.

A name is looked up and judged before each connection, and the address that was judged is what the
child dials: nothing can change in between. By TLS (rtmps) it is dialled by name, as the certificate
is checked against it: whoever points the name elsewhere has no certificate for what is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from livefuse.addresses import (
    Networks,
    build_tcurl,
    check_host,
    pin_url,
    resolve_by_system,
    split_url,
)
from livefuse.errors import PublishConnectError, PublishRejectedError, RefusedError

if TYPE_CHECKING:
    from livefuse.addresses import Resolver
    from livefuse.config import AccessConfig
    from livefuse.publish.rtmp_child import Task


class TargetDialler:
    """Says what the child is told to dial. From the output's thread; waits for names."""

    def __init__(self, access: AccessConfig | None, resolve: Resolver = resolve_by_system) -> None:
        is_restricted = access is not None and access.restrict == "on"
        self._networks = Networks(access.networks) if access and is_restricted else None
        self._resolve = resolve
        self._dials = 0

    def choose(self, task: Task) -> Task:
        """Return `task` as it is to be dialled now.

        Raises:
            PublishRejectedError: it leads to where no job may go.
            PublishConnectError: there is no such host.
        """
        if self._networks is None:
            return task
        try:
            parts = split_url(task.url)
            addresses = check_host(parts.hostname or "", self._networks, self._resolve).addresses
        except RefusedError as error:
            raise PublishRejectedError(error.message, hint=error.hint) from None
        except OSError:
            raise PublishConnectError("there is no such host", hint="check its name") from None
        if parts.scheme == "rtmps":
            return task
        address = addresses[self._dials % len(addresses)]
        self._dials += 1
        tcurl = build_tcurl(task.url)
        return msgspec.structs.replace(task, url=pin_url(parts, address), tcurl=tcurl)
