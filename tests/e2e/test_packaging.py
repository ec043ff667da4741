"""What people install: a wheel that carries its networks, a container, a service of systemd."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from livefuse.config import load_config

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "configs"
MOST_EXPOSED = 2.5
"""Of systemd-analyze's scale from 0 to 10, where up to 3 is "OK"."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet"]
    subprocess.run([*command, "--wheel-dir", folder, ROOT], check=True, timeout=180)
    (path,) = folder.glob("livefuse-*.whl")
    return path


def list_embedded() -> set[str]:
    """Return the networks that the repository carries."""
    command = ["git", "ls-files", "models/*.onnx"]
    tracked = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return {Path(line).name for line in tracked.stdout.split()}


def test_the_wheel_carries_every_embedded_network_and_no_other(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    carried = {Path(name).name for name in names if name.endswith(".onnx")}
    assert carried == list_embedded() != set()
    assert not [name for name in names if name.startswith(("tests/", "configs/"))]
    assert {"livefuse/_models/NOTICE", "livefuse/py.typed"} <= set(names)


def test_the_wheel_runs_alone(wheel: Path, tmp_path: Path) -> None:
    """(R50) Faces are found and covered far from the checkout, with nothing downloaded."""
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    env = {**os.environ, "PYTHONPATH": str(site), "XDG_DATA_HOME": str(tmp_path / "data")}
    command = [sys.executable, "-P", "-m", "livefuse", "run", "--from", "demo:", "--to", "a.mp4"]
    command += ["--for", "3", "--stats", "stats.json", "--quiet"]
    subprocess.run(command, cwd=tmp_path, env=env, check=True, timeout=120)
    where = subprocess.run(
        [sys.executable, "-P", "-c", "import livefuse; print(livefuse.__file__)"],
        cwd=tmp_path, env=env, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert Path(where.stdout.strip()).is_relative_to(site)
    assert (tmp_path / "a.mp4").stat().st_size > 10_000
    stats = (tmp_path / "stats.json").read_text()
    assert '"detect"' in stats


def read_instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions, lines joined."""
    text = (CONFIGS / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in joined.splitlines()]


def test_the_container_is_not_root_and_copies_what_is_there() -> None:
    """(R50)"""
    instructions = read_instructions()
    last_user = [rest for name, rest in instructions if name == "USER"][-1]
    assert last_user.split(":")[0] not in ("root", "0")
    copied = [rest.split()[:-1] for name, rest in instructions if name == "COPY"]
    sources = {source for words in copied for source in words if "--from" not in words[0]}
    kept = (ROOT / ".dockerignore").read_text().splitlines()
    for source in sources:
        assert (ROOT / source).exists(), source
        assert f"!{source}" in kept, f".dockerignore leaves out {source}"
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    for source in needed["targets"]["wheel"]["force-include"]:
        assert any(Path(source).is_relative_to(kept) for kept in sources), source


def test_the_container_starts_what_the_command_line_knows() -> None:
    """(R50)"""
    texts = dict(read_instructions())
    words = re.findall(r'"([^"]*)"', texts["CMD"])
    settings = tuple(words[i + 1] for i, word in enumerate(words) if word == "--set")
    assert words[0] == "serve"
    assert load_config(settings=settings).http.host == "0.0.0.0"
    health = re.findall(r'"([^"]*)"', texts["HEALTHCHECK"])
    compile(health[-1], "HEALTHCHECK", "exec")


def test_systemd_takes_the_service_and_finds_it_little_exposed(tmp_path: Path) -> None:
    text = (CONFIGS / "livefuse.service").read_text()
    unit = tmp_path / "livefuse.service"
    unit.write_text(text.replace("/opt/livefuse/bin/livefuse", sys.executable))
    seen = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    ours = [line for line in seen.stderr.splitlines() if "livefuse.service" in line]
    assert seen.returncode == 0, seen.stderr
    assert ours == []
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", unit],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    found = re.search(r"exposure level for \S+: ([\d.]+)", rated.stdout)
    assert found is not None, rated.stdout
    assert float(found[1]) <= MOST_EXPOSED
