"""Statistics for tests of what shows them."""

from livefuse.measures import Percentiles
from livefuse.telemetry import Statistics

TIMES = Percentiles(8.0, 12.5, 20.0, 300)
OUTPUT = {
    "kind": "rtmp",
    "url": "rtmp://host/app/***",
    "state": "live",
    "connected": True,
    "packets": 10,
    "dropped": 0,
    "reconnects": 2,
    "viewers": 0,
    "error": "",
    "watch": "ffplay rtmp://host/app/***",
}


def make_statistics(**changes):
    fields = {
        "job": "main",
        "state": "live",
        "health": "ONLINE",
        "source": "test:",
        "seconds": 10.0,
        "frames_in": 300,
        "frames_out": 297,
        "fps_in": 30.0,
        "fps_out": 29.7,
        "dropped": {"late": 3, "pool": 0},
        "counts": {},
        "faces": 1,
        "latency": TIMES,
        "latency_recent": TIMES,
        "steps": {"decode": TIMES, "detect": Percentiles(39.0, 45.0, 50.0, 100)},
        "bottleneck": "detect",
        "outputs": [dict(OUTPUT)],
        "notes": ["the picture was cropped to an even size"],
        "media": {"width": 1280, "height": 720, "audio": "aac"},
    }
    return Statistics(**{**fields, **changes})
