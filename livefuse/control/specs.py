"""What a job is asked to do, as it comes from outside: from the API, and from Python's job_args."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from livefuse.beauty import check_beautify
from livefuse.control.access import Access
from livefuse.control.paths import check_distinct
from livefuse.control.requests import Wish, choose_operations
from livefuse.errors import ConfigError, RefusedError
from livefuse.job.spec import JobSpec
from livefuse.token import NEEDS, OPERATIONS, Parameters, check_operations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from livefuse.config import BeautifyConfig, Config
    from livefuse.control.api.views import Spec

# What other programs call the operations, in job_args["processors"].
PROCESSORS: Final = {
    "face_detector": "detect",
    "face_landmarker": "align",
    "face_aligner": "align",
    "face_recognizer": "identify",
    "face_identifier": "identify",
    "background_remover": "background",
    "face_swapper": "swap",
    "face_reenactor": "puppet",
    "face_beautifier": "beautify",
    "face_enhancer": "enhance",
    "face_blurrer": "blur",
}
_PROVIDERS: Final = {
    "cpuexecutionprovider": "cpu",
    "cudaexecutionprovider": "cuda",
    "tensorrtexecutionprovider": "tensorrt",
}


class JobArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `job_manager.submit_job`.

    `source_paths`: the picture of an enrolled face, its id or name, or `avatar:NAME`; at most one.
    `processors` may also be the names of operations. `execution_providers`: the first one counts.
    """

    target_path: str
    output_path: str | tuple[str, ...] = ""
    source_paths: tuple[str, ...] = ()
    processors: tuple[str, ...] = ("face_detector", "face_blurrer")
    execution_threads: int | None = None
    execution_providers: tuple[str, ...] = ()
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)


def create_spec(
    spec: Spec, config: Config, resolve_face: Callable[[str], str], access: Access | None = None
) -> JobSpec:
    """Return the job spec that the API's `spec` describes, its operations chosen and checked.

    Raises:
        TokenError: operations, parameters or the look are unknown or do not fit.
        ConsentError: the source face is not enrolled.
        RefusedError: a target is a file outside of record.folder, a URL one that jobs may not use.
        ConfigError: a target is named twice, or is what is read.
    """
    parameters = add_look(spec.look, spec.parameters, config.beautify)
    names = None if spec.operations is None else ",".join(spec.operations) or "none"
    wish = Wish(names, spec.source_face, spec.look)
    access = access or Access(config.access)
    source = access.check_source(spec.source.strip())
    targets = tuple(access.place_target(url.strip(), config.record) for url in spec.targets)
    check_distinct(source, targets, None, also_read=())
    return JobSpec(
        source=source,
        targets=targets,
        operations=choose_operations(wish, parameters),
        mode=spec.mode,
        source_face=resolve_face(spec.source_face) if spec.source_face else "",
        parameters=parameters,
    )


def add_look(look: str, parameters: Parameters, config: BeautifyConfig) -> Parameters:
    """Return `parameters` with the amounts of `look` beneath their own.

    Raises:
        TokenError, ConfigError: there is no such look, or an amount does not fit.
    """
    beautify: dict[str, float | str] = {}
    if look:
        from livefuse.looks import load_look  # noqa: PLC0415 - reads files, not for every job

        beautify |= load_look(look, config.looks)
    beautify |= parameters.beautify
    return msgspec.structs.replace(parameters, beautify=check_beautify(beautify))


def read_job_args(args: Mapping[str, Any]) -> JobArgs:
    """Return checked job_args.

    Raises:
        ConfigError: a name is unknown or a value does not fit.
    """
    try:
        return msgspec.convert(dict(args), JobArgs)
    except msgspec.ValidationError as error:
        known = ", ".join(JobArgs.__struct_fields__)
        raise ConfigError(f"job_args: {error}", hint=f"the names are {known}") from None


def create_spec_by_args(args: JobArgs, find_face: Callable[[str], str]) -> JobSpec:
    """Return the job spec that `args` describe.

    Raises:
        TokenError, ConfigError: operations, parameters or files do not fit.
        ConsentError: the source face is not enrolled, or nobody has consented.
        RefusedError: there are several source pictures.
    """
    outputs = [args.output_path] if isinstance(args.output_path, str) else args.output_path
    source = choose_source(args)
    spec = JobSpec(
        source=args.target_path,
        targets=tuple(output for output in outputs if output),
        operations=list_operations(args.processors),
        source_face=find_face(source) if source else "",
        parameters=_convert_parameters(args.parameters),
    )
    check_distinct(spec.source, spec.targets, None, also_read=())
    return spec


def list_operations(processors: Sequence[str]) -> tuple[str, ...]:
    """Return the operations that `processors` name, with what they need, in their order.

    Raises:
        TokenError: one is unknown.
    """
    names = [PROCESSORS.get(name, name) for name in processors]
    for name in names:
        if name not in OPERATIONS:
            check_operations([name])
    wanted = set(names).union(*(NEEDS.get(name, ()) for name in names))
    return check_operations(sorted(wanted, key=OPERATIONS.__getitem__))


def apply_execution(args: JobArgs | Spec, config: Config) -> Config:
    """Return `config` with the threads and the device that `args` ask for.

    Raises:
        ConfigError: there is no such provider, or no such number of threads.
    """
    if args.execution_threads is not None:
        if args.execution_threads < 1:
            raise ConfigError("execution_threads is 1 or more", hint="leave it out for the default")
        pipeline = msgspec.structs.replace(
            config.pipeline, execution_threads=args.execution_threads
        )
        config = msgspec.structs.replace(config, pipeline=pipeline)
    if args.execution_providers:
        name = args.execution_providers[0].lower()
        provider = _PROVIDERS.get(name, name)
        if provider not in {"auto", *_PROVIDERS.values()}:
            raise ConfigError(
                f"unknown execution provider {args.execution_providers[0]!r}",
                hint=f"choose from auto, {', '.join(_PROVIDERS.values())}",
            )
        models: Any = msgspec.structs.replace(config.models, providers=provider)
        config = msgspec.structs.replace(config, models=models)
    return config


def choose_source(args: JobArgs) -> str:
    """Return the one source of `args`, or nothing.

    Raises:
        RefusedError: there are several.
    """
    if len(args.source_paths) > 1:
        raise RefusedError(
            f"{len(args.source_paths)} source pictures", hint="a job shows one face: give one"
        )
    return args.source_paths[0] if args.source_paths else ""


def _convert_parameters(values: Mapping[str, Any]) -> Parameters:
    try:
        return msgspec.convert(values, Parameters)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"job_args parameters: {error}", hint="see  livefuse token schema"
        ) from None
