"""Networks on a graphics card: as on the processor, within their memory, built before use.

scripts/test tests/gpu -m gpu
"""

import subprocess
import sys
import threading
import time
from typing import Any

import msgspec
import numpy as np
import pytest

from livefuse.config import Config, ModelsConfig
from livefuse.runtime.precision import compute_psnr, get_reduced_path, reduce_model
from livefuse.runtime.providers import list_usable_providers
from livefuse.runtime.registry import load_registry
from livefuse.runtime.session import SessionCache
from livefuse.token import create_token
from tests.faces import analyse, create_face_frame, create_pipeline

pytestmark = pytest.mark.gpu

EMBEDDED = ("centerface", "facemesh_468", "facemesh_attention_478", "dlib_resnet_128")
MIN_PSNR_DB = 30.0
MEMORY_MB = 4096


def make_feeds(network, seed=0, rows=1):
    """Return inputs of the network's own shape: a smooth picture, 0..1 or 0..255."""
    (name,), (shape,) = network.input_names, network.input_shapes
    shape = [rows if i == 0 else s for i, s in enumerate(shape)]
    shape = [s if s > 0 else {2: 224, 3: 384}[i] for i, s in enumerate(shape)]
    values = np.random.default_rng(seed).uniform(0, 1, shape).astype(np.float32)
    return {name: values * (255.0 if "0..255" in network.model.normalisation else 1.0)}


def compare(one, other, feeds):
    """Return the worst PSNR over the outputs that have a span to speak of."""
    pairs = zip(one.run(feeds), other.run(feeds), strict=True)
    return min(compute_psnr(a, b) for a, b in pairs if a.size >= 16)


@pytest.mark.parametrize("name", EMBEDDED)
def test_a_network_says_the_same_as_on_the_processor(cuda, name):
    card = SessionCache(cuda).get(name)
    assert card.provider == "cuda"
    processor = SessionCache(ModelsConfig(providers="cpu")).get(name)
    for seed in range(3):
        assert compare(processor, card, make_feeds(card, seed)) > MIN_PSNR_DB


def test_bound_runs_equal_plain_ones(cuda):
    network = SessionCache(cuda).get("facemesh_468")
    assert network._bound is not None
    for seed in range(4):
        feeds = make_feeds(network, seed)
        plain = network._session.run(None, feeds)
        for bound, other in zip(network.run(feeds), plain, strict=True):
            assert np.allclose(bound, other, atol=1e-3)


def test_auto_takes_the_card_and_is_no_fallback(cuda):
    assert list_usable_providers()[0] == "cuda"
    sessions = SessionCache(ModelsConfig())
    assert sessions.get("facemesh_468").provider == "cuda"
    assert not sessions.statistics().fell_back


def test_requests_of_many_jobs_go_together_and_are_equal(cuda):
    """(R34)"""
    network = SessionCache(cuda).get("dlib_resnet_128")
    network.warm_up()
    assert network._batcher is not None
    wanted = [network._call(make_feeds(network, seed))[0] for seed in range(24)]
    got: dict[int, np.ndarray[Any, Any]] = {}

    def work(first):
        for seed in range(first, 24, 6):
            got[seed] = network.run(make_feeds(network, seed))[0]

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for seed, other in enumerate(wanted):
        assert np.allclose(got[seed], other, atol=1e-3)
    assert network._batcher.runs <= network._batcher.requests


def test_nothing_is_built_after_warming_up(cuda):
    """(C15, C16)"""
    sessions = SessionCache(cuda)
    pipeline = create_pipeline(Config(models=cuda), sessions=sessions)
    token = create_token(("detect", "align", "identify", "blur"), now_epoch_s=0.0)
    pipeline.prepare(token)
    pipeline.warm_up(1280, 720, token)
    before = sessions.statistics()
    costs = []
    for turn in range(60):
        frame = create_face_frame(250, pts=turn * 3000)
        started = time.perf_counter()
        outcome = pipeline.process(frame, token)
        costs.append(time.perf_counter() - started)
        assert outcome.vouched, outcome.error
    pipeline.close()
    after = sessions.statistics()
    assert (after.sessions_created, after.input_shapes) == (
        before.sessions_created,
        before.input_shapes,
    )
    assert costs[0] <= 2 * max(costs[1:])


def test_faces_are_found_as_on_the_processor(cuda):
    frame = create_face_frame(250)
    (one,) = analyse(frame, config=Config()).faces
    pipeline = create_pipeline(Config(models=cuda), sessions=SessionCache(cuda), every_frame=True)
    token = create_token(("detect", "align"), now_epoch_s=0.0)
    pipeline.prepare(token)
    state = pipeline.begin(create_face_frame(250), token)
    for name in token.operations:
        pipeline.run_step(state, name)
    pipeline.close()
    (other,) = state.faces
    assert one.mesh is not None
    assert other.mesh is not None
    assert np.abs(one.mesh[:, :2] - other.mesh[:, :2]).max() < 1.0


def test_memory_stays_below_the_cap(cuda):
    """(R38) in a process of its own: the arena is the process's."""
    code = """
import subprocess, numpy as np
from livefuse.config import ModelsConfig
from livefuse.runtime.session import SessionCache
sessions = SessionCache(ModelsConfig(providers="cuda", gpu_memory_mb=1024))
for name in ("centerface", "facemesh_468", "facemesh_attention_478", "dlib_resnet_128"):
    network = sessions.get(name)
    for _ in range(5):
        network.warm_up()
rows = subprocess.run(
    ["nvidia-smi", "--query-compute-apps=used_memory", "--format=csv,noheader,nounits"],
    capture_output=True, text=True, check=True).stdout.split()
print(max([int(row) for row in rows if row.isdigit()], default=0))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    used_mb = int(done.stdout.split()[-1])
    print(f"memory of the card with four networks: {used_mb} MB")
    assert used_mb <= MEMORY_MB


def test_halves_are_near_and_half_the_size(cuda, tmp_path):
    """(R32, R33, R39)"""
    pytest.importorskip("onnx")
    config = msgspec.structs.replace(cuda, precision="fp16", cache_folder=str(tmp_path))
    source = load_registry(config).verify_model("facemesh_468")
    target = get_reduced_path(config, source, "fp16", "cuda")
    reduce_model(source, target, "fp16")
    assert target.stat().st_size < 0.6 * source.stat().st_size
    halves, full = SessionCache(config).get("facemesh_468"), SessionCache(cuda).get("facemesh_468")
    assert (halves.precision, full.precision) == ("fp16", "fp32")
    assert compare(full, halves, make_feeds(full)) > MIN_PSNR_DB


def test_engines_are_kept_and_used_again(tensorrt):
    """(C14) the second process does not build what the first has built."""

    def start():
        started = time.perf_counter()
        network = SessionCache(tensorrt).get("facemesh_468")
        assert (network.provider, network.precision) == ("tensorrt", "fp16")
        network.run(make_feeds(network))
        return network, time.perf_counter() - started

    (_, first), (network, second) = start(), start()
    times = first, second
    print(f"first {times[0]:.1f} s, then {times[1]:.1f} s")
    from livefuse.runtime.options import find_cache_folder

    engines = [p for p in find_cache_folder(tensorrt).rglob("*.engine") if p.stat().st_size]
    assert engines
    assert times[1] < times[0]
    processor = SessionCache(ModelsConfig(providers="cpu")).get("facemesh_468")
    assert compare(processor, network, make_feeds(network)) > MIN_PSNR_DB
