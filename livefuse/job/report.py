"""The figures of a job, put together when somebody asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from livefuse.clock import NS_PER_S
from livefuse.job.health import FAILING_SHARE, Condition, Signs, judge
from livefuse.redact import redact_url
from livefuse.telemetry import Statistics, get_logger

if TYPE_CHECKING:
    from livefuse.config import Config
    from livefuse.errors import LivefuseError
    from livefuse.job.builder import Builder
    from livefuse.job.crew import Crew
    from livefuse.job.intake import Entrance
    from livefuse.job.spec import JobSpec
    from livefuse.publish.base import OutputStatus
    from livefuse.publish.fanout import FanOut
    from livefuse.token import Token

_GOOD: Final = frozenset({"LOADING", "ONLINE", "STOPPED"})
_NOT_TAKEN: Final = ("late", "pool")  # came, and were given up before the first ring


class Report:
    """Knows where a job's figures are. For any thread."""

    def __init__(
        self,
        spec: JobSpec,
        config: Config,
        entrance: Entrance,
        builder: Builder,
        fanout: FanOut,
        crew: Crew,
    ) -> None:
        # So long an output may need for its first connection, and that is no news.
        self._opening_s = config.rtmp.connect_timeout_ms / 1000
        self._spec = spec
        self._entrance = entrance
        self._builder = builder
        self._fanout = fanout
        self._crew = crew
        self._telemetry = entrance.telemetry
        self.told: Condition | None = None
        """How the job was when that was last told; None before anything was."""
        self._bad_ns = -NS_PER_S
        self._log = get_logger("job")

    def judge(self, state: str, error: LivefuseError | None) -> Condition:
        """Return how the job is, whose own `state` and `error` are these."""
        entrance, telemetry = self._entrance, self._telemetry
        stages, media = entrance.stages, entrance.media
        is_live = media is not None and media.is_live and entrance.mode == "live"
        load = stages.load if stages is not None else None
        return judge(
            Signs(
                state=state,
                error=error.message if error is not None else "",
                is_loading=self._builder.is_loading,
                input_state=entrance.state,
                input_age_ms=entrance.get_age_ms() if is_live else None,
                frame_ms=1000 / max(media.fps, 1.0) if media is not None else 0.0,
                failed_share=telemetry.get_failed_share(),
                withheld=telemetry.withheld,
                covers_all=load is not None and load.covers_all,
                slow_work=self._crew.find_slow_work(),
                is_holding=stages is not None and stages.pictures.is_holding,
                has_renewed=self._crew.restarts.count_recent("pipeline", telemetry.clock.now_ns())
                > 0,
                outputs=tuple(
                    name_state(status, self._opening_s)
                    for status in self._fanout.statuses()
                    if _is_own(status)
                ),
            )
        )

    def tell_health(self, state: str, error: LivefuseError | None) -> None:
        """Log how the job is when that is news. From the supervisor's thread alone.

        That it is well again is told once it has been so for a second: what comes and goes is one
        trouble, not many.
        """
        condition = health, reason, is_withheld = self.judge(state, error)
        now_ns = self._telemetry.clock.now_ns()
        if health not in _GOOD:
            self._bad_ns = now_ns
        was = self.told
        is_news = was is None or (health, is_withheld) != (was.health, was.is_withheld)
        if is_news and now_ns - self._bad_ns >= (NS_PER_S if health in _GOOD else 0):
            log = self._log.info if health in _GOOD else self._log.warning
            log("health", job=self._entrance.job_id, health=health, reason=reason)
            self.told = condition
            if health not in _GOOD and self._builder.keeper is not None:
                self._builder.keeper.note(health.lower())

    def collect(self, state: str, error: LivefuseError | None, template: Token) -> Statistics:
        """Return the figures of now; `template` is the token that frames are given a copy of."""
        telemetry, entrance = self._telemetry, self._entrance
        stages, media = entrance.stages, entrance.media
        token = (stages.last_token if stages is not None else None) or template
        health, reason, _ = self.judge(state, error)
        loading, dropped = self._builder.loading, telemetry.dropped()
        networks = loading.describe_networks() if loading is not None else {}
        return Statistics(
            job=entrance.job_id,
            state=self._describe_state(state),
            source=redact_url(self._spec.source),
            seconds=round((telemetry.clock.now_ns() - telemetry.started_ns) / NS_PER_S, 3),
            frames_in=entrance.frames + sum(dropped.get(name, 0) for name in _NOT_TAKEN),
            frames_out=telemetry.latency.count,
            fps_in=telemetry.frames_in.per_s(),
            fps_out=telemetry.frames_out.per_s(),
            dropped=dropped,
            counts=telemetry.counts(),
            faces=stages.faces if stages is not None else 0,
            latency=telemetry.latency.overall(),
            latency_recent=telemetry.latency.recent(),
            steps={name: step.overall() for name, step in telemetry.steps.copy().items()},
            bottleneck=telemetry.bottleneck(),
            outputs=[msgspec.to_builtins(status) for status in self._fanout.statuses()],
            notes=[*(media.notes if media is not None else ()), *networks.get("notes", ())],
            media=self._describe_media(),
            token=msgspec.to_builtins(token),
            rung=load.rung_name if (load := stages and stages.load) else "",
            load=load.describe() if load else {},
            networks=networks,
            sound=stages.describe_sound() if stages is not None else {},
            delay_ms=self._fanout.delay_ms,
            health=health,
            health_reason=reason,
            input={"state": entrance.state, "age_ms": entrance.get_age_ms()},
            restarts=self._crew.restarts.counts(),
        )

    def _describe_state(self, state: str) -> str:
        """Return the word for a person: of a job that runs, what its input does, or what fails."""
        if state != "running":
            return state
        if self._builder.is_loading:
            return "loading"
        is_failing = self._telemetry.get_failed_share() >= FAILING_SHARE
        return "degraded" if is_failing else self._entrance.state

    def _describe_media(self) -> dict[str, Any]:
        """Return what the input is and how it is coded."""
        media, stages = self._entrance.media, self._entrance.stages
        if media is None:
            return {}
        return {
            "size": f"{media.width}x{media.height}",
            "fps": round(media.fps, 3),
            "decoder": media.decoder,
            "encoder": stages.encoder.name if stages is not None else "",
            "audio": media.audio.codec if media.audio is not None else "none",
            "mode": self._entrance.mode,
        }


def _is_own(status: OutputStatus) -> bool:
    """Say whether it is one that was asked for, not a stream that somebody watches."""
    return bool(status.id)


def name_state(status: OutputStatus, opening_s: float) -> str:
    """Return the state of an output; `opening` for its first `opening_s` while it is dialled."""
    is_opening = status.state == "connecting" and not status.error
    return "opening" if is_opening and status.state_s < opening_s else status.state
