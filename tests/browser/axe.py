"""axe-core, which finds what keeps people out of a page: had from npm once, kept by pytest."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_PACKAGE = "axe-core@4.14.1"
_RUN = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.map((one) => ({
    id: one.id, impact: one.impact, nodes: one.nodes.map((node) => node.html.slice(0, 160)),
  }));
}"""
_GRAVE = {"serious", "critical"}


def load_axe(folder: Path) -> str:
    """Return axe's source; without npm, or when it gets nothing, the test is skipped."""
    file = folder / "node_modules" / "axe-core" / "axe.min.js"
    npm = shutil.which("npm")
    if not file.exists() and npm is None:
        pytest.skip("not on this machine: npm, which gets axe-core")
    if not file.exists():
        wish = [str(npm), "install", "--prefix", str(folder), "--no-save", "--ignore-scripts"]
        wish += ["--no-audit", "--no-fund", _PACKAGE]
        done = subprocess.run(wish, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            pytest.skip(f"npm does not get {_PACKAGE}")
    return file.read_text("utf-8")


def list_faults(page: Any, axe: str) -> list[dict[str, Any]]:
    """Return the serious and critical faults of what the page shows now."""
    page.evaluate(axe)
    return [fault for fault in page.evaluate(_RUN) if fault["impact"] in _GRAVE]
