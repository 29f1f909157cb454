"""The page's calls about suites behind a real port: who may call them, with which method, and with what."""

import json
from collections.abc import Iterator
from typing import cast

import pytest

from sightline.evals.api.calls import EvalCalls, eval_calls
from tests.gateway_server import Served, served
from tests.http_call import call

SUITE = "tests:\n  - {id: one, criteria: x, input: hi}\n"


class _Named:
    """Whoever is asked for: only the names of the calls matter here."""

    def __getattr__(self, name: str) -> "_Named":
        return self

    def __call__(self, *_: object) -> "_Named":
        return self


CALLS = {
    f"/api/{pattern.replace('*', 'e_1')}": tuple(methods)
    for pattern, methods in eval_calls(cast("EvalCalls", _Named())).items()
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "evals").mkdir()
    (folder / "evals" / "s.yaml").write_text(SUITE)
    (folder / "outside.yaml").write_text(SUITE)
    with served(folder, "") as server:
        yield server


def asked(page: Served, method: str, path: str, body: bytes | None = None, token: str = "") -> tuple[int, bytes]:
    """With the page's token, unless another is told."""
    answer = call(method, page.url + path, body, token=token or page.token)
    return answer.status, answer.body


@pytest.mark.parametrize("path", CALLS)
def test_every_call_wants_the_token(page: Served, path: str) -> None:
    """tests/server/test_app.py has who else is refused, on every path."""
    for method in CALLS[path]:
        status, body = asked(page, method, path, b"{}", token="wrong")
        assert (status, json.loads(body)["error"]["code"]) == (401, "auth")


@pytest.mark.parametrize("path", CALLS)
def test_a_method_that_a_call_does_not_have_is_refused(page: Served, path: str) -> None:
    for method in {"GET", "POST", "PUT", "DELETE"} - set(CALLS[path]):
        if method == "GET" and path.count("/") == 3:
            continue  # a name that no call has is one of a run
        assert asked(page, method, path, b"{}")[0] == 405


ORDERS = [path for path, methods in CALLS.items() if methods == ("POST",)]


@pytest.mark.parametrize("path", ORDERS)
@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"\xff\xfe", b'{"zz": 1}', b'{"file": 1}', b"[" * 100_000, b'{"a":' * 5000], ids=len
)
def test_bodies_that_make_no_sense_are_refused_in_words(page: Served, path: str, body: bytes) -> None:
    status, answer = asked(page, "POST", path, body)
    assert status in (400, 404, 409, 413, 422)
    assert json.loads(answer)["error"]["message"]


def test_a_body_that_is_too_large_is_refused(page: Served) -> None:
    for path in ORDERS:
        assert asked(page, "POST", path, json.dumps({"yaml": "x" * (4 << 20)}).encode())[0] == 413


def test_a_case_that_runs_a_command_is_not_taken_from_a_request(page: Served) -> None:
    case = {"id": "new", "input": "hi", "assertions": [{"type": "code-grader", "command": ["touch", "ran"]}]}
    told = {"file": "s.yaml", "yaml": json.dumps({"tests": [case]})}
    status, answer = page.post("/api/evals/save", json.dumps(told).encode())
    assert (status, answer["error"]["message"]) == (422, "evals/s.yaml would run a command that it does not run now")


@pytest.mark.parametrize("run", ["e_9", "..%2f..", "%00", "e_1%27--", "%ff", "x" * 2000])
def test_unknown_run_is_reported(page: Served, run: str) -> None:
    for path in (f"/api/evals/{run}", f"/api/evals/{run}/case?case=one"):
        assert asked(page, "GET", path)[0] == 404
    for order, body in (("rerun", {}), ("stop", {}), ("case/save", {"case": "one", "path": ["input"], "value": "x"})):
        assert page.post(f"/api/evals/{run}/{order}", json.dumps(body).encode())[0] == 404
