"""Networks of one's own, from the command line: stand-ins with the real names and shapes."""

import json
import os
import subprocess
import sys

import pytest

from tests.contract.repo import ROOT
from tests.faces import ASTRONAUT
from tests.standins import install_standins, save_standin

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


def type_command(folder, *tokens):
    return subprocess.run(
        [sys.executable, "-m", "livefuse", *tokens],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(folder / "private")},
        capture_output=True,
        text=True,
        timeout=80,
        check=False,
    )


def test_a_swapper_of_ones_own(short_clip, tmp_path):
    """Imported with its licence accepted, fed with an enrolled face, its steps in the token."""
    models = install_standins(tmp_path / "models", "w600k_r50")
    here = ["--set", f"models.folder={models.folder}"]
    save_standin("inswapper_128", tmp_path / "downloads")
    file = str(tmp_path / "downloads" / "inswapper_128.onnx")
    refused = type_command(tmp_path, "models", "import", file, *here)
    assert refused.returncode != 0
    assert "licence" in refused.stderr
    done = type_command(tmp_path, "models", "import", file, "--accept-licence", *here)
    assert done.returncode == 0, done.stderr
    consent = "Anna Berger, my live streams, 1y"
    done = type_command(
        tmp_path, "faces", "enroll", str(ASTRONAUT), "--name", "anna", "--consent", consent
    )
    assert done.returncode == 0, done.stderr
    done = type_command(
        tmp_path, "run", "--from", str(short_clip), "--to", "swapped.mp4", "--source-face", "anna",
        "--set", "swap.model=inswapper_128", "--set", "http.port=0", "--stats", "s.json", *here,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    stats = json.loads((tmp_path / "s.json").read_text("utf-8"))
    assert stats["frames_out"] == stats["frames_in"] == 90
    assert not [name for name in stats["counts"] if name.startswith("covered")]
    assert [entry["state"] for entry in stats["token"]["log"]] == ["detect", "align", "swap"]
    assert stats["token"]["log"][-1]["reason"] == "swapped 1"
