"""Secrets leave the process list (C76)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livefuse.control.process_title import redact_arguments

CHILD = """
import sys
from livefuse.control.process_title import hide_secrets_in_arguments
print(hide_secrets_in_arguments(), flush=True)
sys.stdin.read()
"""
ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux's /proc")
def test_ps_shows_no_secret():
    urls = ["rtsp://me:hunter2@cam.invalid/1", "--to=rtmp://host.invalid/app/STREAMKEY", "plain"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, *urls],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=env,
        text=True,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "True\n"
        shown = Path(f"/proc/{child.pid}/cmdline").read_bytes()
        child.stdin.close()
    assert b"hunter2" not in shown
    assert b"STREAMKEY" not in shown
    arguments = shown.rstrip(b"\0").split(b"\0")
    assert arguments[-3:] == [
        b"rtsp://***@cam.invalid/1",
        b"--to=rtmp://host.invalid/app/***",
        b"plain",
    ]


def test_a_line_without_secrets_is_left_alone():
    block = b"python\0-m\0livefuse\0run\0--from\0clip.mp4\0"
    assert redact_arguments(block) == block


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)),
    st.text("abcdefgh", min_size=1, max_size=3),
)
def test_the_block_keeps_its_length_and_ends_with_nul(arguments, key):
    url = f"rtmp://h/app/{key}1234"
    block = "\0".join([*arguments, url]).encode() + b"\0"
    safe = redact_arguments(block)
    assert len(safe) == len(block)
    assert safe.endswith(b"\0")
    assert f"{key}1234".encode() not in safe
