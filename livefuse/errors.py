"""The one error tree. Foreign errors stop at the edge module that met them.

    LivefuseError
      ConfigError          a key, a value or a command line that cannot be used
      TokenError           malformed, expired, tampered
      ModelError           missing, digest mismatch, provider unavailable, inference failed
      IngestError
        IngestConnectError      no such host, refused, unreachable
        IngestAuthError         wrong or missing password
        IngestNotFoundError     404, no such file, no such camera
        IngestTlsError          the certificate is not trusted
        IngestTimeoutError      it answered too late, or connected and sent nothing
        IngestUnsupportedError  no video stream, or a codec that cannot be decoded
        IngestEndedError        the stream ended
      PublishError
        PublishConnectError     no such host, refused, a folder that cannot be written
        PublishRejectedError    the server said no to the name or key
        PublishStalledError     the peer takes nothing any more
      ConsentError         no consent for this face, expired or revoked
      RefusedError         what is asked for is not done here
        NotAcceptableError      nothing that both ends understand: no common codec
      AuditError           what would be done cannot be logged, so it is not done
      JobError             a conflict of states
        JobNotFoundError        there is no such job, or nothing of that name in it
        JobChangedError         somebody else changed it meanwhile
        JobCapacityError        all places are taken
        JobMemoryError          its process holds more memory than it may
      StorageError         what has to be kept cannot be written: the disc is full
      DaemonError          the daemon that jobs are sent to (LIVEFUSE_URL) cannot be reached
        DaemonTimeoutError      it did not answer in time
        DaemonAuthError         it does not take the key, or not for this

Every error says whether trying again can help (`retryable`) and what a person can do (`hint`).
Texts never hold credentials or stream keys: the raiser passes them through `redact`.
"""

from __future__ import annotations

from typing import ClassVar, Final


class LivefuseError(Exception):
    """Base of all errors that livefuse raises on purpose."""

    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}: {self.hint}" if self.hint else self.message


class ConfigError(LivefuseError):
    """A key, a value or a command line that cannot be used."""


class TokenError(LivefuseError):
    """A token that is malformed, expired or tampered with."""


class ModelError(LivefuseError):
    """A model file or an inference that cannot be relied on."""


class IngestError(LivefuseError):
    """The input cannot be opened or read."""


class IngestConnectError(IngestError):
    """No such host, refused, or unreachable."""

    retryable = True


class IngestAuthError(IngestError):
    """The server wants other credentials; trying again would only lock the account."""


class IngestNotFoundError(IngestError):
    """404, no such file or no such camera."""


class IngestTlsError(IngestError):
    """The server's certificate is not trusted."""


class IngestTimeoutError(IngestError):
    """The server answered too late, or connected and sent nothing."""

    retryable = True


class IngestUnsupportedError(IngestError):
    """There is no video stream, or its codec cannot be decoded here."""


class IngestEndedError(IngestError):
    """The stream ended."""

    retryable = True


class PublishError(LivefuseError):
    """An output cannot be opened or written."""


class PublishConnectError(PublishError):
    """No such host, refused, or a folder that cannot be written."""

    retryable = True


class PublishRejectedError(PublishError):
    """The server said no to the name or the key."""

    retryable = True


class PublishStalledError(PublishError):
    """The peer takes nothing any more."""

    retryable = True


class ConsentError(LivefuseError):
    """A face that nobody has consented to, or no longer."""


class RefusedError(LivefuseError):
    """Something that is understood and not done."""


class NotAcceptableError(RefusedError):
    """There is nothing that both ends understand: no common codec."""


class AuditError(LivefuseError):
    """What would be done cannot be written into the audit log: a full disc, a closed folder."""

    retryable = True


class JobError(LivefuseError):
    """A conflict of states: what is asked for does not go with what the job is doing."""


class JobNotFoundError(JobError):
    """There is no such job, or nothing of that name in it."""


class JobChangedError(JobError):
    """Somebody else changed it since it was read."""


class JobCapacityError(JobError):
    """All places are taken."""

    retryable = True


class JobMemoryError(JobError):
    """Its process holds more memory than it may; in another process it may go on."""

    retryable = True


class StorageError(LivefuseError):
    """What has to be kept cannot be written."""

    retryable = True


class DaemonError(LivefuseError):
    """The daemon that was asked cannot be reached, or answers what cannot be understood."""

    retryable = True


class DaemonTimeoutError(DaemonError):
    """The daemon did not answer in time."""


class DaemonAuthError(DaemonError):
    """The daemon does not take the key, or not for what was asked."""

    retryable = False


# Error -> exit code: the nearest class in the error's MRO decides. 2 is the shell's own "usage".
EXIT_CODES: Final[dict[type[BaseException], int]] = {
    ConfigError: 2,
    TokenError: 3,
    ModelError: 4,
    StorageError: 5,
    IngestError: 10,
    IngestConnectError: 11,
    IngestAuthError: 12,
    IngestNotFoundError: 13,
    IngestTlsError: 14,
    IngestTimeoutError: 15,
    IngestUnsupportedError: 16,
    IngestEndedError: 17,
    PublishError: 20,
    PublishConnectError: 21,
    PublishRejectedError: 22,
    PublishStalledError: 23,
    JobError: 30,
    JobNotFoundError: 31,
    JobChangedError: 32,
    JobCapacityError: 33,
    JobMemoryError: 34,
    ConsentError: 40,
    RefusedError: 41,
    NotAcceptableError: 42,
    AuditError: 43,
    DaemonError: 50,
    DaemonTimeoutError: 51,
    DaemonAuthError: 52,
    LivefuseError: 1,
}

# Error -> HTTP status, read in the same way.
HTTP_STATUSES: Final[dict[type[BaseException], int]] = {
    ConfigError: 422,
    TokenError: 422,
    ModelError: 503,
    IngestError: 502,
    PublishError: 502,
    ConsentError: 403,
    RefusedError: 422,
    NotAcceptableError: 406,
    AuditError: 503,
    JobError: 409,
    JobNotFoundError: 404,
    JobChangedError: 412,
    JobCapacityError: 503,
    StorageError: 507,
    DaemonError: 502,
    DaemonTimeoutError: 504,
    DaemonAuthError: 403,
    LivefuseError: 500,
}


def get_exit_code(error: BaseException) -> int:
    """Return the process exit code for `error` (1 for a foreign one)."""
    return _find(EXIT_CODES, error, 1)


def get_http_status(error: BaseException) -> int:
    """Return the HTTP status for `error` (500 for a foreign one)."""
    return _find(HTTP_STATUSES, error, 500)


def _find(table: dict[type[BaseException], int], error: BaseException, default: int) -> int:
    return next((table[kind] for kind in type(error).__mro__ if kind in table), default)
