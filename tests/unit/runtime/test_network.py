"""A network of its own making: checked, stacked, warmed up, and given up in small precision."""

import threading
import time

import numpy as np
import pytest

from livefuse.errors import ModelError
from livefuse.runtime.binding import BoundRunner
from livefuse.runtime.guard import Expectation
from livefuse.runtime.network import Network
from tests.unit.runtime.graphs import (
    create_sessions,
    make_picture,
    write_conv,
    write_divider,
    write_manifest,
)


@pytest.fixture
def folder(tmp_path):
    write_conv(tmp_path / "free.onnx")
    write_conv(tmp_path / "fixed.onnx", batch=1)
    write_divider(tmp_path / "divider.onnx")
    write_manifest(tmp_path, {"free": "enhance", "fixed": "enhance", "divider": "mask"})
    return tmp_path


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("name", ["free", "fixed"])
@pytest.mark.parametrize("count", [1, 3, 8, 11])
def test_a_batch_equals_one_by_one(folder, name, count):
    network = create_sessions(folder).get(name)
    many = [{"x": make_picture(seed)} for seed in range(count)]
    together = network.run_batch(many)
    alone = [network.run(feeds) for feeds in many]
    assert len(together) == count
    for one, other in zip(together, alone, strict=True):
        assert one[0].shape == other[0].shape == (1, 3, 16, 16)
        assert np.allclose(one[0], other[0], atol=1e-6)


def test_a_batch_is_one_run_where_the_network_allows(folder):
    sessions = create_sessions(folder, max_batch=4)
    free, fixed = sessions.get("free"), sessions.get("fixed")
    assert (free.is_stackable, fixed.is_stackable) == (True, False)
    many = [{"x": make_picture(seed)} for seed in range(6)]
    free.run_batch(many)
    assert {shape[0][0] for shape in free.shapes} == {4, 2}
    fixed.run_batch(many)
    assert {shape[0][0] for shape in fixed.shapes} == {1}
    assert free.run_batch([]) == []


def test_other_shapes_in_a_batch_go_by_themselves(folder):
    network = create_sessions(folder).get("free")
    many = [{"x": make_picture(0)}, {"x": make_picture(1)[:, :, :8]}]
    with pytest.raises(ModelError, match="inference of free failed"):
        network.run_batch(many)  # the second is refused by the network itself


def test_embedded_networks_are_stacked_and_equal():
    """(R34) the identity network takes many faces at once."""
    from tests.faces import share_sessions

    network = share_sessions().get("dlib_resnet_128")
    random = np.random.default_rng(1)
    name = network.input_names[0]
    many = [{name: random.uniform(0, 255, (1, 3, 150, 150)).astype(np.float32)} for _ in range(3)]
    together = network.run_batch(many)
    for feeds, outputs in zip(many, together, strict=True):
        assert np.allclose(outputs[0], network.run(feeds)[0], atol=1e-5)


def test_requests_of_many_threads_go_together_on_a_card(folder):
    """(R34) the batcher of a card, on a session of the processor."""
    real = create_sessions(folder).get("free")
    network = Network(real._session, real.model, "cuda", max_batch=4)
    network._bound = BoundRunner(real._session, "cpu")
    failures = []

    def work(number):
        for turn in range(20):
            feeds = {"x": make_picture(100 * number + turn)}
            if not np.allclose(network.run(feeds)[0], real.run(feeds)[0], atol=1e-6):
                failures.append((number, turn))

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert failures == []
    assert network._batcher is not None
    assert network._batcher.requests == 120
    assert network._batcher.runs <= 120


def test_garbage_is_refused_and_told(folder):
    network = create_sessions(folder).get("divider")
    feeds = {"x": np.ones((2, 1, 16, 16), np.float32)}
    assert network.run(feeds)[0].min() == 1.0
    feeds["x"][1, 0, 3, 3] = 0.0
    with pytest.raises(ModelError, match="divider cannot be used: it is not finite"):
        network.run(feeds)
    assert network.garbage == 1


def test_garbage_of_one_row_does_not_reach_another_caller(folder):
    """The check looks at each caller's own rows, after a run in company."""
    real = create_sessions(folder).get("divider")
    network = Network(real._session, real.model, "cuda", max_batch=8)
    network._bound = BoundRunner(real._session, "cpu")
    good, bad = (np.full((1, 1, 16, 16), value, np.float32) for value in (2.0, 0.0))
    results: list[tuple[float, float | None]] = []

    def work(values):
        for _ in range(30):
            try:
                results.append((values[0, 0, 0, 0], float(network.run({"x": values})[0].min())))
            except ModelError:
                results.append((values[0, 0, 0, 0], None))

    threads = [threading.Thread(target=work, args=(v,), daemon=True) for v in (good, bad, good)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(results) == 90
    assert all((said is None) == (value == 0.0) for value, said in results)


def test_twice_garbage_in_less_than_full_precision_loads_the_network_in_full(folder):
    sessions = create_sessions(folder)
    broken, sound = sessions.get("divider"), sessions.get("free")
    model = sound.model
    network = Network(
        broken._session, model, "cpu", precision="fp16", reload=lambda: sound._session
    )
    bad = {"x": np.zeros((1, 1, 16, 16), np.float32)}
    for _ in range(2):
        with pytest.raises(ModelError, match="not finite"):
            network.run(bad)
    wait_for(lambda: network.note)
    assert network.precision == "fp32"
    assert "gave garbage in fp16 and runs in fp32 now" in network.note
    assert network.run({"x": make_picture(0)})[0].shape == (1, 3, 16, 16)


def test_a_network_that_cannot_be_loaded_in_full_says_so(folder):
    broken = create_sessions(folder).get("divider")
    network = Network(broken._session, broken.model, "cpu", precision="int8", reload=lambda: None)
    for _ in range(4):
        with pytest.raises(ModelError):
            network.run({"x": np.zeros((1, 1, 16, 16), np.float32)})
    wait_for(lambda: network.note)
    assert "cannot be loaded in fp32" in network.note
    assert network.garbage == 4


def test_a_caller_may_expect_something_else(folder):
    network = create_sessions(folder).get("divider")
    feeds = {"x": make_picture(0, channels=1)}
    assert network.run(feeds)[0].min() == 1.0  # a mask may be the same everywhere
    with pytest.raises(ModelError, match="same value everywhere"):
        network.run(feeds, expect=Expectation(may_be_flat=False))


def test_warming_up_runs_every_shape_that_will_come(folder):
    """(C15) free sides are the manifest's size, or what the caller names."""
    sessions = create_sessions(folder)
    free = sessions.get("free")
    free.warm_up()
    assert free.shapes == {((1, 3, 16, 16),)}
    shapes = [{"x": (1, 3, 16, 16)}, {"x": (5, 3, 16, 16)}]
    free.warm_up(shapes)
    assert {shape[0][0] for shape in free.shapes} == {1, 5}


def test_warming_up_a_card_runs_the_smallest_and_the_largest_batch(folder):
    real = create_sessions(folder).get("free")
    network = Network(real._session, real.model, "tensorrt", max_batch=8)
    network._bound = BoundRunner(real._session, "cpu")
    network.warm_up()
    assert {shape[0][0] for shape in network.shapes} == {1, 8}


def test_all_embedded_networks_warm_up():
    from tests.faces import share_sessions

    for name in ("centerface", "facemesh_468", "dlib_resnet_128", "selfie_seg_256"):
        network = share_sessions().get(name)
        network.warm_up()
        assert network.shapes


def test_a_bound_run_equals_a_plain_one_and_keeps_few_shapes(folder):
    real = create_sessions(folder).get("free")
    runner = BoundRunner(real._session, "cpu")
    kept = []
    for seed in range(4):
        feeds = {"x": make_picture(seed)}
        kept.append((runner.run(feeds)[0], real.run(feeds)[0]))
    for one, other in kept:  # and one run's outputs are not overwritten by the next
        assert np.array_equal(one, other)
    for rows in range(1, 20):
        runner.run({"x": make_picture(0, rows)})
        assert len(runner._free) <= 8


def test_a_bound_run_takes_views_too(folder):
    real = create_sessions(folder).get("free")
    view = make_picture(0, rows=4)[::2, ::-1]
    assert not view.flags.c_contiguous
    runner = BoundRunner(real._session, "cpu")
    for _ in range(2):
        assert np.array_equal(runner.run({"x": view})[0], real.run({"x": view.copy()})[0])


def test_a_failed_bound_run_leaves_nothing_behind(folder):
    real = create_sessions(folder).get("free")
    runner = BoundRunner(real._session, "cpu")
    with pytest.raises(Exception, match="dimension"):
        runner.run({"x": np.zeros((1, 3, 4, 4), np.float32)})
    assert runner.run({"x": make_picture(0)})[0].shape == (1, 3, 16, 16)


def test_a_thousand_frames_make_no_session(folder):
    """(R31) one session per model, whatever asks and however often."""
    sessions = create_sessions(folder)
    feeds = {"x": make_picture(0)}
    for _ in range(1000):
        sessions.get("free").run(feeds)
        sessions.get("fixed").run(feeds)
    statistics = sessions.statistics()
    assert statistics.sessions_created == 2
    assert statistics.input_shapes == 2
