"""What the daemon tells Prometheus."""

from livefuse.control.daemon.admission import Demand, Free
from livefuse.control.daemon.exposition import merge_expositions
from livefuse.control.daemon.figures import DaemonFigures, create_daemon_metrics
from livefuse.metrics import render_metrics

FIGURES = DaemonFigures(
    epoch=7,
    phases={"running": 2, "queued": 1},
    restarts={"cam": 3},
    waiting=1,
    workers={"busy": 2, "spare": 1, "starting": 0, "ending": 0},
    answering=3,
    lost=4,
    used=Demand(1.25, 0),
    free=Free(0.75, 1 << 30),
)
WORKER = """\
# HELP livefuse_fps Pictures
# TYPE livefuse_fps gauge
livefuse_fps{job_id="JOB",side="in"} 30.0
# HELP process_cpu_seconds_total Seconds
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 1.5
# HELP livefuse_audit_records_total Records
# TYPE livefuse_audit_records_total counter
livefuse_audit_records_total{event="job.started"} 1.0
# HELP livefuse_rung Rung
# TYPE livefuse_rung gauge
"""


def test_what_workers_tell_becomes_one_text_and_none_stands_for_another():
    first, second = WORKER.replace("JOB", "a"), WORKER.replace("JOB", "b} x")
    assert merge_expositions({"1": first, "2": second, "3": ""}) == [
        "# HELP livefuse_fps Pictures",
        "# TYPE livefuse_fps gauge",
        'livefuse_fps{job_id="a",side="in"} 30.0',
        'livefuse_fps{job_id="b} x",side="in"} 30.0',
        "# HELP process_cpu_seconds_total Seconds",
        "# TYPE process_cpu_seconds_total counter",
        'process_cpu_seconds_total{worker="1"} 1.5',
        'process_cpu_seconds_total{worker="2"} 1.5',
        "# HELP livefuse_audit_records_total Records",
        "# TYPE livefuse_audit_records_total counter",
        'livefuse_audit_records_total{worker="1",event="job.started"} 1.0',
        'livefuse_audit_records_total{worker="2",event="job.started"} 1.0',
    ]


def test_a_job_that_two_workers_know_of_is_told_once():
    """While it goes from one to the other; the same series twice would spoil the whole scrape."""
    text = WORKER.replace("JOB", "a")
    lines = merge_expositions({"1": text, "2": text.replace("30.0", "12.0")})
    assert [line for line in lines if line.startswith("livefuse_fps{")] == [
        'livefuse_fps{job_id="a",side="in"} 12.0'
    ]


def test_the_daemon_tells_its_jobs_its_workers_and_its_room():
    registry = create_daemon_metrics(FIGURES, lambda: ({"key.created": 2}, False))
    text = "\n".join(merge_expositions({"daemon": render_metrics(registry)[0].decode()}))
    for line in (
        "livefuse_daemon_epoch 7.0",
        'livefuse_daemon_jobs{phase="running"} 2.0',
        'livefuse_daemon_jobs{phase="failed"} 0.0',
        "livefuse_daemon_queue_length 1.0",
        'livefuse_job_restarts_total{job_id="cam"} 3.0',
        'livefuse_daemon_workers{state="busy"} 2.0',
        'livefuse_daemon_workers{state="ending"} 0.0',
        "livefuse_daemon_workers_answering 3.0",
        "livefuse_daemon_lost_workers_total 4.0",
        'livefuse_daemon_cores{kind="free"} 0.75',
        "livefuse_daemon_free_memory_bytes 1.073741824e+09",
        'livefuse_audit_records_total{worker="daemon",event="key.created"} 2.0',
    ):
        assert line in text
    assert 'process_resident_memory_bytes{worker="daemon"} ' in text
    silent = FIGURES._replace(free=Free(0.0, None))
    assert (
        b"free_memory" not in render_metrics(create_daemon_metrics(silent, lambda: ({}, False)))[0]
    )
