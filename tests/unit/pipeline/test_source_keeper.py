from concurrent.futures import Executor, Future

from livefuse.errors import ConsentError
from livefuse.pipeline.aside import InlineExecutor
from livefuse.pipeline.source_keeper import SourceKeeper


class LateExecutor(Executor):
    """Does its work when told to."""

    def __init__(self):
        self.waiting = []

    def submit(self, fn, /, *args, **kwargs):
        future: Future[object] = Future()
        self.waiting.append((future, fn, args))
        return future

    def work(self):
        future, fn, args = self.waiting.pop(0)
        try:
            future.set_result(fn(*args))
        except Exception as error:  # noqa: BLE001 - handed on to whoever asks
            future.set_exception(error)


def build(face_id):
    if face_id == "revoked":
        raise ConsentError("the consent was revoked")
    if face_id == "broken":
        raise KeyError(face_id)
    return face_id.upper()


def test_another_source_is_made_aside_and_the_old_shown_meanwhile():
    aside = LateExecutor()
    keeper = SourceKeeper(aside, build)
    keeper.set_source("one")
    keeper.follow("two")
    keeper.follow("two")
    assert keeper.made == "ONE"
    assert len(aside.waiting) == 1
    aside.work()
    keeper.follow("two")
    assert keeper.made == "TWO"


def test_a_source_that_nobody_wants_any_more_is_not_shown():
    aside = LateExecutor()
    keeper = SourceKeeper(aside, build)
    keeper.set_source("one")
    keeper.follow("two")
    aside.work()
    keeper.follow("three")
    assert keeper.made == "ONE"
    keeper.follow("three")
    aside.work()
    keeper.follow("three")
    assert keeper.made == "THREE"


def test_a_refusal_is_told_and_not_tried_for_ever():
    keeper = SourceKeeper(InlineExecutor(), build)
    keeper.set_source("one")
    keeper.follow("revoked")
    assert keeper.made == "ONE"
    assert keeper.problem == "the consent was revoked"
    keeper.follow("one")
    assert keeper.problem == ""
    keeper.follow("broken")
    assert keeper.problem == "KeyError"
