"""Every operation of the OpenAPI description, fuzzed over the wire."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from serving import explorer

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance, negative_data_rejection]
OPERATIONS = {("GET", "/api/models"), ("GET", "/api/puzzle"), ("POST", "/api/look"), ("POST", "/api/probe")}
OPERATIONS |= {("POST", f"/api/{name}") for name in ("decode", "price", "tokens", "imagine", "map")}

CASES = [(*one, mode) for one in sorted(OPERATIONS) for mode in GenerationMode]
CASES.remove(("GET", "/api/models", GenerationMode.NEGATIVE))  # it has no parameters that could be wrong


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    with explorer(tmp_path_factory.mktemp("fuzz")) as address:
        yield schemathesis.openapi.from_url(f"{address}/api/openapi.json")


def test_the_description_is_complete(described):
    assert {(found.ok().method.upper(), found.ok().path) for found in described.get_all_operations()} == OPERATIONS


@pytest.mark.parametrize(("method", "path", "mode"), CASES)
def test_nothing_a_request_says_is_a_server_error(described, method, path, mode):
    statuses = set()

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(case=described[path][method].as_strategy(generation_mode=mode))
    def fuzz(case):
        response = case.call()
        refused_unread = response.status_code == 413  # too large: a rejection that the check does not know
        case.validate_response(response, checks=[check for check in CHECKS if not (refused_unread and check is negative_data_rejection)])
        statuses.add(response.status_code)

    fuzz()
    assert statuses
    assert max(statuses) < 500
