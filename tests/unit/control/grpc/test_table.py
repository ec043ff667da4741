"""The table of calls, the proto and the addresses of the HTTP API say the same (R46)."""

import filecmp
import re
import subprocess
import sys

import msgspec
import pytest

from livefuse.control.api import faces, views
from livefuse.control.api.audit import AuditList
from livefuse.control.api.routes import ROUTES
from livefuse.control.grpc.table import CALLS, NOT_CALLS
from livefuse.publish.base import OutputStatus
from livefuse.safety.audit_records import AuditRecord
from livefuse.safety.deny_shelf import DeniedFace
from livefuse.safety.evidence import Evidence
from livefuse.token import Token
from livefuse.token.token import LogEntry
from tests.contract.repo import ROOT
from tests.rpc import pb

FOLDER = ROOT / "livefuse/control/grpc"
PROTO = "livefuse/v1/livefuse.proto"
MESSAGES = pb.DESCRIPTOR.message_types_by_name


def bare(path):
    return re.sub(r"\{[^}]*\}", "{}", path)


def test_every_address_is_a_call_or_says_why_not():
    addresses = {(route.method, bare(route.path)) for route in ROUTES}
    calls = {(call.method, bare(call.path)) for call in CALLS}
    assert calls <= addresses
    assert {path for _, path in addresses - calls} == set(NOT_CALLS)


def test_the_table_and_the_proto_have_the_same_calls():
    services = pb.DESCRIPTOR.services_by_name
    said = {f"{name}/{method.name}" for name, one in services.items() for method in one.methods}
    assert sorted(call.name for call in CALLS) == sorted(said)


def find_method(call):
    service, _, name = call.name.partition("/")
    return pb.DESCRIPTOR.services_by_name[service].methods_by_name[name]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_what_a_call_names_is_in_its_messages(call):
    method = find_method(call)
    takes = set(method.input_type.fields_by_name)
    gives = set(method.output_type.fields_by_name)
    named = set(re.findall(r"\{(\w+)\}", call.path)) | {field for field, _ in call.headers}
    assert named <= takes
    assert {name for name in (call.body, call.upload) if name not in {"", "*"}} <= takes
    assert {call.reply} - {""} <= gives
    assert {field for field, _ in call.reply_headers} <= gives
    assert method.server_streaming == (call.kind == "events")
    if call.kind == "file":
        assert gives == {"data", "media_type"}


QUERIES = {(route.method, bare(route.path)): route.query for route in ROUTES}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_what_is_left_goes_into_a_query_that_the_address_knows(call):
    query = QUERIES[call.method, bare(call.path)]
    if call.body == "*":
        return  # it takes all that is left
    fields = set(find_method(call).input_type.fields_by_name)
    if call.upload:
        fields |= set(MESSAGES["Picture"].fields_by_name) - {"data", "media_type", call.upload}
        fields -= {call.upload, "consent"} - set(query)
    used = set(re.findall(r"\{(\w+)\}", call.path)) | {call.body, *dict(call.headers)}
    assert fields - used <= set(query)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Job", views.JobView),
        ("JobChange", views.JobChange),
        ("Spec", views.Spec),
        ("Spec", views.SpecView),
        ("Token", Token),
        ("LogEntry", LogEntry),
        ("Output", OutputStatus),
        ("Face", views.FaceView),
        ("Catalogue", views.Catalogue),
        ("Operation", views.OperationView),
        ("Amount", views.AmountView),
        ("Look", views.LookView),
        ("Recording", views.RecordingView),
        ("CreateJobRequest", views.NewJob),
        ("AddOutputRequest", views.NewOutput),
        ("EnrolledFace", faces.EnrolledFace),
        ("ListFacesResponse", faces.FaceList),
        ("ListDeniedFacesResponse", faces.DeniedList),
        ("DeniedFace", DeniedFace),
        ("Evidence", Evidence),
        ("ListRecordsResponse", AuditList),
        ("AuditRecord", AuditRecord),
    ],
)
def test_a_message_has_every_field_of_the_json(name, kind):
    told = {field.encode_name for field in msgspec.structs.fields(kind)}
    assert told - set(MESSAGES[name].fields_by_name) == set()


def test_the_generated_file_is_what_protoc_makes_now(tmp_path):
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{FOLDER}", f"--python_out={tmp_path}"]
    subprocess.run([*command, PROTO], check=True, timeout=60)
    made = tmp_path / "livefuse/v1/livefuse_pb2.py"
    assert filecmp.cmp(made, FOLDER / "livefuse_pb2.py", shallow=False), (
        f"protoc says otherwise: cp what  {' '.join(command[2:])}  makes"
    )
