"""Failures end in one line; the traceback is for debug, and holds no secret either."""

import pytest

from livefuse.control.console import make_one_line
from livefuse.control.failure import explain_unexpected, report_failure
from livefuse.errors import IngestAuthError, LivefuseError

URL = "rtsp://me:hunter2hunter2@cam/1"


def test_the_line_has_message_and_hint_and_the_code_is_the_errors(capsys):
    error = IngestAuthError(f"wrong password\nfor {URL}", hint="check it")
    assert report_failure(error, (URL,)) == 12
    told = capsys.readouterr()
    assert told.err == "livefuse: wrong password for rtsp://***@cam/1: check it\n"
    assert told.out == ""


@pytest.mark.parametrize(("level", "traced"), [("info", False), ("debug", True)])
def test_the_unforeseen_becomes_a_line(level, traced, capsys):
    with pytest.raises(LivefuseError) as caught, explain_unexpected(level, (URL,)):
        raise ZeroDivisionError(f"division of {URL} with hunter2hunter2")
    told = capsys.readouterr().err
    assert ("Traceback" in told) is traced
    assert ("log.level=debug" in str(caught.value)) is not traced
    assert "ZeroDivisionError" in str(caught.value)
    assert "hunter2hunter2" not in told + str(caught.value)


def test_a_foreseen_error_loses_its_secrets_on_the_way():
    with pytest.raises(IngestAuthError) as caught, explain_unexpected("info", (URL,)):
        raise IngestAuthError("the server refused hunter2hunter2", hint="not hunter2hunter2")
    assert str(caught.value) == "the server refused ***: not ***"


def test_lines_are_joined():
    assert make_one_line("a\n  b\tc") == "a b c"
