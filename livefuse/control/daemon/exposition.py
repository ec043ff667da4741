"""Metrics of several processes as one text in Prometheus' format. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_HELP: Final = "# HELP "
_TYPE: Final = "# TYPE "
_JOB: Final = 'job_id="'
OWN: Final = "livefuse_daemon_"


def merge_expositions(texts: Mapping[str, str]) -> list[str]:
    """Return the lines of several expositions as one, each family once; `texts` by who told them.

    What bears a `job_id` stays as it is, told once: a job that goes from one process to another may
    be in both for a moment. So does what there is once (`livefuse_daemon_`). What is of a process
    (`process_`, what it wrote into the audit log) is told by each, so it gets a label `worker`.
    """
    heads: dict[str, list[str]] = {}
    samples: dict[str, dict[str, str]] = {}
    for worker, text in texts.items():
        family = ""
        for line in text.splitlines():
            if line.startswith((_HELP, _TYPE)):
                family = line.split(" ", 3)[2]
                head = heads.setdefault(family, [])
                samples.setdefault(family, {})
                if not any(line.startswith(told[: len(_HELP)]) for told in head):
                    head.append(line)
            elif line and not line.startswith("#"):
                series, value = _label(line, worker)
                samples.setdefault(family, {})[series] = value
    lines: list[str] = []
    for family, head in heads.items():
        if told := samples[family]:
            lines += [*head, *(f"{series} {value}" for series, value in told.items())]
    return lines


def _label(line: str, worker: str) -> tuple[str, str]:
    """Return name and labels of a sample, and what follows them."""
    end = line.find("} ") + 1 if "{" in line else line.find(" ")
    series, value = line[:end], line[end + 1 :]
    if _JOB in series or series.startswith(OWN):
        return series, value
    name, _, labels = series.partition("{")
    return f'{name}{{worker="{worker}"' + (f",{labels}" if labels else "}"), value
