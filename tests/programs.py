"""Scripts of people's own that use `livefuse.job_manager` (R45), for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.contract.repo import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# As the requirement writes it, but for the addresses.
AS_WRITTEN = """
from livefuse import job_manager

job_args = {{
    'source_paths': {sources!r},
    'target_path': {target!r},
    'output_path': {output!r},
    'processors': ['face_detector', 'face_swapper', 'face_enhancer'],
    'execution_threads': 6,
    'execution_providers': ['CPUExecutionProvider'],
}}
job_id = job_manager.create_job()
job_manager.submit_job(job_id, job_args)
job_manager.start_job(job_id)
"""
STOP = """
import time

while job_manager.get_status(job_id).frames_out < 20:
    time.sleep(0.1)
status = job_manager.get_status(job_id)
print(sorted(status.steps), status.outputs[0]["connected"], status.token["source_face"])
print(job_manager.stop_job(job_id), job_manager.get_status(job_id).state)
"""


def run_python(
    arguments: Sequence[str], folder: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run Python in `folder`, with a private store of its own."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(folder / "private")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**env, **variables},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def run_script(text: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `text` as a script there."""
    script = folder / "script.py"
    script.write_text(text)
    return run_python([script.name], folder, **variables)
