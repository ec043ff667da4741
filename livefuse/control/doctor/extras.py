"""What can be installed besides, and what each is for."""

from __future__ import annotations

import importlib.metadata
from typing import Final, NamedTuple

from livefuse.control.doctor.check import Check


class Extra(NamedTuple):
    """An extra of the package: what has to be installed, and what it is for."""

    packages: tuple[str, ...]
    purpose: str


EXTRAS: Final = {
    "grpc": Extra(
        ("grpcio", "grpcio-health-checking", "grpcio-reflection", "protobuf"),
        "the API over gRPC (grpc.enabled)",
    ),
    "otel": Extra(
        ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"),
        "spans of the API (tracing.endpoint)",
    ),
    "c2pa": Extra(("c2pa-python",), "signed recordings (mark.c2pa)"),
    "virtualcam": Extra(("pyvirtualcam",), "virtualcam: outputs"),
}
"""As pyproject.toml has them."""


def check_extras() -> list[Check]:
    """Return a line for each extra: its versions, or what is missing for what."""
    return [_check_extra(name, extra) for name, extra in EXTRAS.items()]


def _check_extra(name: str, extra: Extra) -> Check:
    found = {package: _find_version(package) for package in extra.packages}
    title = f"extra {name}"
    if missing := [package for package, version in found.items() if not version]:
        text = f"{' and '.join(missing)} not installed, for {extra.purpose}"
        return Check("warning", title, text, f"pip install 'livefuse[{name}]'")
    versions = ", ".join(f"{package} {version}" for package, version in found.items())
    return Check("ok", title, f"{versions}, for {extra.purpose}")


def _find_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
