"""deface_fps, deface_cover: file to file against the `deface` command with the same weights.

`deface` gets an environment of its own, `.venv-deface`, made once, with onnxruntime, its faster
backend.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.bench.coverage import measure_coverage
from tests.bench.harness import LIVEFUSE, ROOT, Result, bench, median, run_counted
from tests.media import make_clip

if TYPE_CHECKING:
    from pathlib import Path

_ROUNDS = 3
_PACKAGES = ("deface==1.5.0", "onnxruntime", "opencv-python-headless")


def _find_deface() -> Path:
    folder = ROOT / ".venv-deface"
    program = folder / "bin" / "deface"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "pip"), "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, *_PACKAGES], check=True)
        # deface asks for opencv-python, which needs libGL; the headless one takes its place.
        subprocess.run(
            [str(folder / "bin" / "pip"), "uninstall", "-qy", "opencv-python"], check=True
        )
        subprocess.run([*pip, "--force-reinstall", "--no-deps", _PACKAGES[2]], check=True)
    return program


@bench("deface_fps", "deface_cover")
def measure_deface(folder: Path) -> dict[str, Result]:
    """Frames a second, ours over deface's, and the share of faces that ours covered."""
    program = _find_deface()
    clip = make_clip(folder / "face.mp4", seconds=20, size=(640, 360), fps=30)
    frames = 600
    ours, theirs = folder / "ours.mp4", folder / "theirs.mp4"
    fps: dict[str, list[float]] = {"livefuse": [], "deface": []}
    for _ in range(_ROUNDS):
        cost = run_counted(
            [*LIVEFUSE, "run", "--from", str(clip), "--to", str(ours), "--operations",
             "detect,blur", "--quiet", "--set", "record.overwrite=true"]
        )  # fmt: skip
        fps["livefuse"].append(frames / cost.wall_s)
        cost = run_counted([str(program), str(clip), "-o", str(theirs), "--keep-audio"])
        fps["deface"].append(frames / cost.wall_s)
    ratios = [a / b for a, b in zip(fps["livefuse"], fps["deface"], strict=True)]
    detail = {f"{who}_fps": round(median(values), 1) for who, values in fps.items()}
    cover = measure_coverage(clip, ours)
    return {
        "deface_fps": Result(median(ratios), "ratio", ">= 4", detail),
        "deface_cover": Result(cover.share, "share", ">= 0.995", {"faces": cover.faces}),
    }
