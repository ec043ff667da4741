"""Every command of the README is run: here, or by the test that this table names."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from livefuse.control.cli import create_app
from livefuse.errors import EXIT_CODES, ConsentError
from tests.contract.repo import ROOT, read_text
from tests.faces import ASTRONAUT

pytestmark = pytest.mark.e2e

README = ROOT / "README.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Command -> the file and test that runs it, or its like with a server or file of the test's own.
RUN_ELSEWHERE = {
    "scripts/demo": ("tests/e2e/test_readme.py", "test_the_first_command"),
    "scripts/demo --from rtsp://user:password@camera/stream --to rtmp://live.example/app/key": (
        "tests/e2e/test_readme.py",
        "test_the_first_command",
    ),
    "scripts/test": ("tests/contract/test_repo_rules.py", "test_scripts_are_short_and_can_be_run"),
    "livefuse run --from camera:NAME --to rtmp://live.example/app/key": (
        "tests/e2e/test_cli.py",
        "test_bad_input_ends_in_one_line_and_leaves_nothing",
    ),
    "livefuse run --from whip: --to rtmp://live.example/app/key": (
        "tests/e2e/test_readme.py",
        "test_what_is_asked_with_curl",
    ),
    "livefuse record --from rtsp://user:password@camera/stream cam.mkv": (
        "tests/wire/test_record.py",
        "test_rtsp_through_a_restart_of_the_server",
    ),
    "livefuse replay cam.mkv --report decisions.json": (
        "tests/e2e/test_replay.py",
        "test_two_processes_write_the_same_report",
    ),
    "livefuse run --from replay:cam.mkv --to rtmp://live.example/app/key": (
        "tests/e2e/test_replay.py",
        "test_in_real_time_it_is_a_live_source",
    ),
    "livefuse doctor": ("tests/e2e/test_cli.py", "test_the_doctor_tells_ok_warning_and_problem"),
    "livefuse cameras": ("tests/e2e/test_cli.py", "test_looking_commands"),
    "livefuse models verify": ("tests/e2e/test_cli.py", "test_looking_commands"),
    "livefuse models list": ("tests/e2e/test_cli.py", "test_looking_commands"),
    "livefuse looks list": ("tests/e2e/test_cli.py", "test_looking_commands"),
    "livefuse looks parameters": ("tests/e2e/test_cli.py", "test_looking_commands"),
    "livefuse token schema": ("tests/e2e/test_cli.py", "test_looking_commands"),
    "livefuse serve": ("tests/e2e/test_readme.py", "test_the_service_and_its_keys"),
    "livefuse keys create --role streamer --name anna": (
        "tests/e2e/test_readme.py",
        "test_the_service_and_its_keys",
    ),
    "livefuse keys list": ("tests/e2e/test_readme.py", "test_the_service_and_its_keys"),
    "livefuse keys revoke anna": ("tests/e2e/test_readme.py", "test_the_service_and_its_keys"),
    "livefuse top": ("tests/e2e/test_readme.py", "test_the_service_and_its_keys"),
    "livefuse models import inswapper_128.onnx --accept-licence": (
        "tests/unit/control/commands/test_models.py",
        "test_a_swapper_tells_what_else_it_needs",
    ),
    "livefuse run --from clip.mp4 --to swapped.mp4 --source-face anna "
    "--set swap.model=inswapper_128": (
        "tests/e2e/test_own_models.py",
        "test_a_swapper_of_ones_own",
    ),
}
RUN_HERE = {
    "livefuse run --from test: --to out.mp4 --for 5": "out.mp4",
    "livefuse run --from clip.mp4 --to covered.mp4 --set blur.style=mosaic --stats figures.json": (
        "covered.mp4"
    ),
    "livefuse run --from clip.mp4 --to robot.mp4 --source-face avatar:robot": "robot.mp4",
    "livefuse run --from clip.mp4 --to look.mp4 --look natural --param smile=0.3": "look.mp4",
}
# What the API answers, of a job that waits for its camera.
RUN_WITH_CURL = {
    'curl -H "Authorization: Bearer $KEY" http://127.0.0.1:8090/v1/jobs': '"id":"main"',
    'curl -X PATCH -H "Authorization: Bearer $KEY" '
    '-H "Content-Type: application/merge-patch+json" '
    """-d '{"parameters": {"blend_ratio": 1}}' http://127.0.0.1:8090/v1/jobs/main/token""": (
        '"blend_ratio":1.0'
    ),
}
# One after the other, in one folder.
RUN_IN_TURN = (
    'livefuse faces enroll portrait.png --name anna --consent "Anna Berger, my live streams, 1y"',
    "livefuse run --from clip.mp4 --to anna.mp4 --source-face anna --look natural",
    "livefuse faces list",
    "livefuse faces revoke anna",
    "livefuse mark read anna.mp4",
    "livefuse mark key",
    "livefuse audit verify",
    "livefuse audit show --event job",
)


def list_commands():
    blocks = BLOCK.findall(README.read_text("utf-8"))
    return [line for block in blocks for line in block.splitlines() if line]


def test_every_command_is_run_somewhere():
    assert set(list_commands()) == {*RUN_ELSEWHERE, *RUN_HERE, *RUN_WITH_CURL, *RUN_IN_TURN}
    for path, name in RUN_ELSEWHERE.values():
        assert f"def {name}(" in read_text(ROOT / path)


@pytest.mark.parametrize(
    "command", [c for c in list_commands() if not c.startswith(("scripts/test", "curl"))]
)
def test_every_command_can_be_parsed(command):
    program, *tokens = shlex.split(command)
    if program == "scripts/demo":
        tokens.insert(0, "demo")
    called, *_ = create_app().parse_args(tokens, exit_on_error=False, print_error=False)
    assert callable(called)


def type_command(command, folder):
    """Run `command` in `folder` as a user would, with a private store of its own."""
    tokens = shlex.split(command)[1:]
    if tokens[0] == "run":
        tokens += ["--set", "http.port=0"]
    return subprocess.run(
        [sys.executable, "-m", "livefuse", *tokens],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(folder / "private")},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


@pytest.mark.timeout(180)
def test_the_service_and_its_keys(tmp_path):
    """Each line as it stands, but for the port, with a job that a streamer's key makes."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(tmp_path / "private")}
    env["XDG_RUNTIME_DIR"] = str(tmp_path)

    def type_here(command, **more):
        tokens = shlex.split(command)[1:]
        done = subprocess.run(
            [sys.executable, "-m", "livefuse", *tokens],
            cwd=tmp_path, env=env | more, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    serve = [sys.executable, "-m", "livefuse", "serve", "--set", "http.port=0"]
    with subprocess.Popen(
        serve, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True
    ) as daemon:
        try:
            assert daemon.stdout is not None
            lines = [daemon.stdout.readline() for _ in range(2)]
            page = re.search(r"http://127\.0\.0\.1:\d+/\?key=\S+", "".join(lines))
            assert page is not None, lines
            key = type_here("livefuse keys create --role streamer --name anna").split()[-1]
            base = page[0].partition("/?")[0]
            spec = {"source": "test:?size=320x180", "operations": []}
            request = urllib.request.Request(
                f"{base}/v1/jobs",
                json.dumps({"id": "cam", "spec": spec, "start": True}).encode(),
                {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert answer.status == 201
            assert "anna" in type_here("livefuse keys list")
            assert "cam" in type_here("livefuse top", LIVEFUSE_URL=page[0])
            type_here("livefuse keys revoke anna")
            assert "revoked" in type_here("livefuse keys list")
            assert "job.started" in type_here("livefuse audit show --event job")
        finally:
            daemon.send_signal(signal.SIGTERM)
            assert daemon.wait(30) == 0


@pytest.mark.parametrize("command", RUN_HERE)
def test_a_command_does_what_is_said(command, short_clip, tmp_path):
    (tmp_path / "clip.mp4").symlink_to(short_clip)
    done = type_command(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / RUN_HERE[command]).stat().st_size > 10_000


def test_what_is_asked_with_curl(tmp_path):
    """Each line as it stands, $KEY from the address that is printed; the port is another."""
    arguments = ["run", "--from", "whip:", "--to", "rtmp://127.0.0.1:9/app/key"]
    command = [sys.executable, "-m", "livefuse", *arguments, "--set", "http.port=0"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(tmp_path)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            found = None
            while found is None:
                line = process.stdout.readline()
                assert line, process.stderr.read()
                found = re.search(r"(http://127\.0\.0\.1:\d+)/\?key=(\S+)", line)
            for line, answer in RUN_WITH_CURL.items():
                done = subprocess.run(
                    line.replace("http://127.0.0.1:8090", found[1]).replace("curl", "curl -sS"),
                    shell=True,
                    env={**env, "KEY": found[2]},
                    capture_output=True,
                    text=True,
                    timeout=20,
                    check=False,
                )
                assert done.returncode == 0, done.stderr
                assert answer in done.stdout
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
        finally:
            process.kill()


@pytest.mark.timeout(150)
def test_a_person_lends_a_face_and_takes_it_back(short_clip, tmp_path):
    """(C78) Enrolled, shown, listed, revoked; after that there is no swap."""
    (tmp_path / "clip.mp4").symlink_to(short_clip)
    (tmp_path / "portrait.png").symlink_to(ASTRONAUT)
    for command in RUN_IN_TURN:
        done = type_command(command, tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "anna.mp4").stat().st_size > 10_000
    (tmp_path / "anna.mp4").unlink()
    refused = type_command(RUN_IN_TURN[1], tmp_path)
    assert refused.returncode == EXIT_CODES[ConsentError]
    assert "revoked" in refused.stderr


@pytest.mark.skipif(
    Path(sys.prefix).resolve() != (ROOT / ".venv").resolve(), reason="this is not scripts/setup's"
)
def test_the_first_command(tmp_path):
    target = tmp_path / "demo.mp4"
    done = subprocess.run(
        [ROOT / "scripts/demo", "--to", target, "--for", "2", "--set", "http.port=0"],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "watch: http://127.0.0.1:" in done.stdout
    assert target.stat().st_size > 10_000
