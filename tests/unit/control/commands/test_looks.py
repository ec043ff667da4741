"""`livefuse looks`: what there is, how it is written, what it is made of."""

import tomllib

from livefuse.beauty import COLOURS, PARAMETERS
from livefuse.control.cli import main
from livefuse.errors import EXIT_CODES, ConfigError


def test_looks_are_listed_with_the_users_own(tmp_path, capfd):
    (tmp_path / "mine.toml").write_text('text = "Only mine."\n[beautify]\nsmooth = 0.2\n')
    assert main(["looks", "list", "--set", f"beautify.looks={tmp_path}"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 9
    assert any(line.startswith("mine ") and "Only mine." in line for line in lines)
    assert any("自然" in line for line in lines)


def test_a_look_is_shown_as_it_is_written(capfd):
    assert main(["looks", "show", "natural"]) == 0
    shown = tomllib.loads(capfd.readouterr().out)
    assert shown["beautify"]["smooth"] == 0.45


def test_a_wrong_name_ends_with_a_guess(capfd):
    assert main(["looks", "show", "naturel"]) == EXIT_CODES[ConfigError]
    assert "did you mean natural?" in capfd.readouterr().err


def test_every_parameter_is_listed(capfd):
    assert main(["looks", "parameters"]) == 0
    listed = {line.split()[0] for line in capfd.readouterr().out.splitlines()}
    assert listed == {*PARAMETERS, *COLOURS}
