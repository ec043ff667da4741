"""One error tree: each has its own exit code, none is 0, the docstring draws them all."""

from livefuse import errors


def _subclasses(kind: type) -> set[type]:
    below: list[type] = kind.__subclasses__()
    return {kind}.union(*map(_subclasses, below))


def test_every_error_has_a_distinct_exit_code_and_is_drawn():
    kinds = {k for k in _subclasses(errors.LivefuseError) if k.__module__ == errors.__name__}
    assert set(errors.EXIT_CODES) == kinds
    assert len(set(errors.EXIT_CODES.values())) == len(kinds)
    assert 0 not in errors.EXIT_CODES.values()
    for kind in kinds:
        assert kind.__name__ in (errors.__doc__ or "")


def test_the_nearest_class_decides_the_exit_code():
    class Special(errors.IngestAuthError):
        pass

    assert errors.get_exit_code(Special("no")) == errors.EXIT_CODES[errors.IngestAuthError]
    assert errors.get_exit_code(ValueError()) == 1


def test_the_text_says_what_happened_and_what_to_do():
    error = errors.IngestConnectError("cannot reach h:1", hint="start the server")
    assert str(error) == "cannot reach h:1: start the server"
    assert str(errors.ConfigError("bad")) == "bad"
