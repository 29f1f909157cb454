"""A server with two workers: one gateway, one page, one record."""

import asyncio
import base64
import http.client
import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from time import sleep
from typing import Any

import openai
import pytest

from sightline.catalog.facts import Facts
from sightline.exchange.relay_messages import WaitCall, write_call
from sightline.model.json import Json
from tests.background import wait_until_gone
from tests.http_call import call
from tests.postgres_server import database
from tests.upstream import LAST, Talk, chunk, head, pieces, says
from tests.worker_stage import CONFIG, REPLY, Client, WorkerStage, asked, delta, wait_until_ended, workers

SSE = [("Content-Type", "text/event-stream")]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerStage]:
    with workers(tmp_path_factory.mktemp("workers")) as stage:
        yield stage


@pytest.fixture
def stage(running: WorkerStage) -> Iterator[WorkerStage]:
    """The server that the tests of this file share, with a provider that says good morning and no rules."""
    running.worker()
    running.upstream.script = [says(REPLY)]
    yield running
    running.leave()
    running.person.put("/api/rules", [])
    running.person.put("/api/interception", {"mode": "rules"})


def slots(stage: WorkerStage) -> int:
    """How many processes have recorded something."""
    return len(list((stage.folder / "data" / "journal").glob("*.lock")))


def test_every_request_of_an_sdk_is_on_record_once_whoever_served_it(stage: WorkerStage) -> None:
    ids = []
    for number in range(8):
        with openai.OpenAI(base_url=f"{stage.server.url}/p/acme/v1", api_key="k", max_retries=0) as client:
            got = client.chat.completions.with_raw_response.create(
                model="m", messages=[{"role": "user", "content": f"sdk {number}"}]
            )
            ids.append(got.headers["x-sightline-exchange"])
            assert got.parse().choices[0].message.content == "Good morning"
    listed = [each["id"] for each in stage.server.api("/api/exchanges?limit=100&filter=text:sdk")["exchanges"]]
    assert sorted(listed) == sorted(ids)
    assert slots(stage) >= 2, "both processes have recorded"


def test_a_translated_conversation_goes_on_in_whichever_process_it_comes_to(stage: WorkerStage) -> None:
    def client() -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{stage.server.url}/p/acme/v1", api_key="k", max_retries=0)

    before = None
    for number in range(6):
        with client() as sdk:
            made = sdk.responses.create(model="m", input=f"turn {number}", previous_response_id=before)
        before = made.id
    sent = stage.upstream.seen[-1].json()["messages"]
    assert [each["role"] for each in sent] == ["user", "assistant"] * 5 + ["user"]
    with client() as sdk:
        assert sdk.responses.retrieve(made.id).output_text == "Good morning"
        with pytest.raises(openai.BadRequestError):
            sdk.responses.create(model="m", input="go on", previous_response_id="resp_x_0000000000")


def test_a_rule_holds_for_the_next_request_on_every_connection_and_no_longer_than_it_is_set(
    stage: WorkerStage,
) -> None:
    clients = stage.clients(4)
    assert [client.ask("before")[0] for client in clients] == [200] * 4
    for _ in range(2):
        stage.person.put("/api/rules", [{"filter": "text:refused", "action": "drop"}])
        assert [client.ask("refused")[0] for client in clients] == [400] * 4
        assert [client.ask("allowed")[0] for client in clients] == [200] * 4
        stage.person.put("/api/rules", [])
        assert [client.ask("refused")[0] for client in clients] == [200] * 4


def test_a_request_on_any_connection_is_held_edited_and_released(stage: WorkerStage) -> None:
    clients = stage.clients(2)
    assert [client.ask("before")[0] for client in clients] == [200] * 2
    stage.person.put("/api/interception", {"mode": "every"})
    got: list[tuple[int, str]] = []
    threads = [threading.Thread(target=lambda each=each: got.append(each.ask("hold me"))) for each in clients]
    for thread in threads:
        thread.start()
    held = stage.person.held(2)
    seen = len(stage.upstream.seen)
    for exchange in held:
        body = asked("changed by hand").decode()
        changed = stage.person.edited(exchange, op="set_body", body=body)
        assert stage.person.release(exchange, changed["body_sha256"])[0] == 200
    for thread in threads:
        thread.join(60)
    assert sorted(got) == sorted((200, exchange) for exchange in held)
    assert [each.body for each in stage.upstream.seen[seen:]] == [asked("changed by hand")] * 2


def test_the_page_is_told_the_facts_of_every_process(stage: WorkerStage) -> None:
    clients = stage.clients(4)
    with stage.person.listening() as facts:
        ids = {client.ask("live")[1] for client in clients}
        finished, received = set(), set()
        while finished != ids:
            fact = facts.get(timeout=60)
            if fact["exchange"] in ids:
                (finished if fact["kind"] == "finished" else received).add(fact["exchange"])
        assert received == ids


def test_a_page_and_a_program_that_wants_every_fact_can_watch_all_processes_in_turn(stage: WorkerStage) -> None:
    clients = stage.clients(4)

    def follow(facts: "SimpleQueue[Any]", words: str) -> None:
        ids = {client.ask(words)[1] for client in clients}
        while ids:
            fact = facts.get(timeout=60)
            if fact.get("kind") == "finished":
                ids.discard(fact["exchange"])

    with stage.person.listening("?frames=0&brief=1") as few:
        follow(few, "for the page alone")
        with stage.person.listening() as every:
            follow(every, "for both")
        follow(few, "for the page again")
        follow(few, "and again")


def test_a_stream_under_way_can_be_looked_at_wherever_it_runs(stage: WorkerStage) -> None:
    go_on = asyncio.Event()
    stage.upstream.script = [pieces(head(200, SSE), chunk(delta("first")), go_on, chunk(b"data: [DONE]\n\n"), LAST)]
    answers = [client.send(asked("look", stream=True)) for client in stage.clients(2)]
    for answer in answers:
        assert b"first" in answer.readline()
        exchange = answer.headers["x-sightline-exchange"]
        facts = stage.server.api(f"/api/exchanges/{exchange}")["facts"]
        assert [b"first" in base64.b64decode(fact["data"]) for fact in facts if fact["kind"] == "frame"] == [True]
    stage.upstream._loop.call_soon_threadsafe(go_on.set)
    assert all(answer.read().endswith(b"[DONE]\n\n") for answer in answers)


def waits(stage: WorkerStage, model: str) -> Any:
    """How long a request of a command would have to wait."""
    body = write_call(WaitCall("acme", model, 1, Facts()))
    answer = call("POST", f"{stage.server.url}/api/relay/wait", body, token=stage.server.token)
    assert answer.status == 200, answer
    return answer.body


def test_what_a_provider_allows_is_known_in_the_main_process_as_soon_as_a_client_has_its_answer(
    stage: WorkerStage,
) -> None:
    for number, client in enumerate(stage.clients(4)):
        used_up: Json = {"x-ratelimit-limit-requests": "9", "x-ratelimit-remaining-requests": "0"}
        stage.upstream.script = [says(REPLY, headers=[*used_up.items(), ("x-ratelimit-reset-requests", "50s")])]
        client.send(asked("limits", model=f"limited-{number}")).read()
        assert b"reported" in waits(stage, f"limited-{number}")
        assert b"reported" not in waits(stage, f"other-{number}")


def test_a_client_that_reads_slowly_and_leaves_is_noticed_after_its_connection_was_handed_over(
    stage: WorkerStage,
) -> None:
    stage.person.put("/api/rules", [{"filter": "text:nothing-says-this", "action": "hold"}])
    first = len(stage.upstream.connections)

    async def endless(talk: Talk) -> None:
        await talk.say(head(200, SSE))
        while True:
            await talk.say(chunk(delta("x" * 4000)))
            await asyncio.sleep(0)

    stage.upstream.script = [endless]
    clients = stage.clients(2)
    answers = [client.send(asked("slow", stream=True)) for client in clients]
    for answer in answers:
        assert answer.readline().startswith(b"data: ")
    exchanges = [answer.headers["x-sightline-exchange"] for answer in answers]
    for client, answer in zip(clients, answers, strict=True):
        answer.close()
        client.connection.close()
    for connection in range(first, len(stage.upstream.connections)):
        wait_until_gone(stage.upstream, connection)
    assert [stage.person.ended(exchange)["state"] for exchange in exchanges] == ["cancelled"] * 2


def test_requests_that_are_no_plain_ones_are_answered_on_every_connection(stage: WorkerStage) -> None:
    headers = {"authorization": f"Bearer {stage.server.token}"}
    for client in stage.clients(2):
        assert client.ask("first")[0] == 200
        for method, path, status in (("GET", "/v1/models", 200), ("GET", "/api/about", 200), ("HEAD", "/", 200)):
            client.connection.request(method, path, headers=headers)
            answer = client.connection.getresponse()
            answer.read()
            assert answer.status == status
        client.connection.request("POST", "/v1/chat/completions", b"{}", {"host": "evil.example"})
        refused = client.connection.getresponse()
        assert (refused.status, b"Host header" in refused.read()) == (403, True)
        assert client.ask("last")[0] == 200


def test_a_worker_that_is_killed_takes_only_its_own_exchanges_and_is_started_again(stage: WorkerStage) -> None:
    go_on = asyncio.Event()
    stage.upstream.script = [pieces(head(200, SSE), chunk(delta("first")), go_on, chunk(b"data: [DONE]\n\n"), LAST)]
    before = stage.worker()
    with stage.person.listening() as facts:
        answers = [client.send(asked("kill", stream=True)) for client in stage.clients(4)]
        assert all(b"first" in answer.readline() for answer in answers)
        ids = [answer.headers["x-sightline-exchange"] for answer in answers]
        shown: set[str] = set()
        while not shown.issuperset(ids):  # a worker shares its facts every few milliseconds
            shown.add(facts.get(timeout=60)["exchange"])
        os.kill(before, signal.SIGKILL)
        told = set()
        while len(told) < 2:
            fact = facts.get(timeout=60)
            if fact["kind"] == "failed":
                assert fact["code"] == "interrupted"
                told.add(fact["exchange"])
    stage.upstream._loop.call_soon_threadsafe(go_on.set)
    whole = set()
    for exchange, answer in zip(ids, answers, strict=True):
        try:
            assert answer.read().endswith(b"[DONE]\n\n")
            whole.add(exchange)
        except http.client.HTTPException:
            assert exchange in told
    assert whole == set(ids) - told
    assert len(whole) == 2
    after = stage.worker(other_than=before)
    views = {exchange: stage.person.ended(exchange) for exchange in ids}
    assert {exchange for exchange in ids if views[exchange]["state"] == "finished"} == whole
    assert {views[exchange]["fault"]["code"] for exchange in told} == {"interrupted"}
    stage.upstream.script = [says(REPLY)]
    assert [client.ask("again")[0] for client in stage.clients(2)] == [200] * 2
    assert after != before


def test_every_answer_that_a_client_saw_is_on_record_whenever_a_worker_was_killed(stage: WorkerStage) -> None:
    answered: list[str] = []
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            client = Client(stage.server.url)
            try:
                status, exchange = client.ask("under load")
                assert status == 200
                answered.append(exchange)
            except (OSError, http.client.HTTPException):
                continue  # it was connected to the worker that was killed
            finally:
                client.connection.close()

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    worker = 0
    for _ in range(2):
        worker = stage.worker(other_than=worker)
        before = len(answered)
        while len(answered) < before + 20:
            sleep(0.01)
        os.kill(worker, signal.SIGKILL)
    stage.worker(other_than=worker)
    is_over.set()
    for thread in threads:
        thread.join(60)
    found: dict[str, str] = {}
    before_id = ""
    while page := stage.server.api(f"/api/exchanges?limit=100&filter=text:load&before={before_id}")["exchanges"]:
        found |= {each["id"]: each["state"] for each in page}
        before_id = page[-1]["id"]
    assert {found.get(each) for each in answered} == {"finished"}
    assert len(set(answered)) == len(answered)


def counted(stage: WorkerStage) -> int:
    """How many exchanges the metrics of all processes have."""
    text = stage.server.data("/api/metrics").decode()
    found = re.findall(r"^gen_ai_client_operation_duration_seconds_count\{.*\} (\d+)$", text, re.MULTILINE)
    return sum(map(int, found))


def test_metrics_are_the_sum_of_all_processes_and_never_shrink_when_one_ends(stage: WorkerStage) -> None:
    before = counted(stage)  # from now on, all of them count
    for client in stage.clients(4):
        client.ask("count me")
    assert counted(stage) == before + 4
    worker = stage.worker()
    os.kill(worker, signal.SIGKILL)
    stage.worker(other_than=worker)
    assert counted(stage) == before + 4, "what the worker had reported stays"
    for client in stage.clients(4):
        client.ask("count me too")
    assert counted(stage) == before + 8, "the new worker counts as well"


def is_answered(stage: WorkerStage) -> bool:
    """Whether a client that connects now is served."""
    try:
        stage.clients(1)
    except OSError:
        return False
    return True


def test_a_server_that_ends_lets_the_clients_of_its_workers_finish(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    with workers(tmp_path) as stage:
        worker = stage.worker()
        stage.upstream.script = [pieces(head(200, SSE), chunk(delta("first")), go_on, chunk(b"data: [DONE]\n\n"), LAST)]
        answers = [client.send(asked("end", stream=True)) for client in stage.clients(2)]
        assert all(b"first" in answer.readline() for answer in answers)
        stage.process.send_signal(signal.SIGTERM)
        while is_answered(stage):
            sleep(0.01)
        stage.upstream._loop.call_soon_threadsafe(go_on.set)
        assert all(answer.read().endswith(b"[DONE]\n\n") for answer in answers)
        stage.process.communicate(timeout=60)
        assert stage.process.returncode == 0
        wait_until_ended(worker)
        assert not list((tmp_path / "data" / "journal").glob("*.log")), "all of it is in the database"


@pytest.mark.parametrize("first", [0, 1])
def test_the_clients_of_a_process_finish_although_those_of_the_other_have(tmp_path: Path, first: int) -> None:
    gates = [asyncio.Event(), asyncio.Event()]
    with workers(tmp_path) as stage:
        stage.upstream.script = [
            pieces(head(200, SSE), chunk(delta("first")), gate, chunk(b"data: [DONE]\n\n"), LAST) for gate in gates
        ]
        answers = [client.send(asked("end", stream=True)) for client in stage.clients(2)]
        assert all(b"first" in answer.readline() for answer in answers)
        stage.process.send_signal(signal.SIGTERM)
        while is_answered(stage):
            sleep(0.01)
        for each in (first, 1 - first):
            stage.upstream._loop.call_soon_threadsafe(gates[each].set)
            assert answers[each].read().endswith(b"[DONE]\n\n")
            sleep(0.5)  # the process that has no more clients now goes on with its end
        stage.process.communicate(timeout=60)
        assert stage.process.returncode == 0


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_main_process_that_is_killed_leaves_no_worker_and_every_answer_on_record(tmp_path: Path, kind: str) -> None:
    def story(*words: str) -> None:
        with workers(tmp_path, *words) as stage:
            worker = stage.worker()
            ids = {client.ask(f"kept {number}")[1] for number, client in enumerate(stage.clients(6))}
            stage.kill()
            wait_until_ended(worker)
        with workers(tmp_path, *words) as stage:
            found = stage.server.api("/api/exchanges?limit=100")["exchanges"]
            assert {each["id"]: each["state"] for each in found} == dict.fromkeys(ids, "finished")

    if kind == "sqlite":
        story()
    else:
        with database() as url:
            story("--store", url)


def test_a_limit_on_connections_is_kept_by_one_process_where_it_cannot_be_divided(tmp_path: Path) -> None:
    config = '[network]\nmax_connections = 5\n[providers.acme]\ndialect = "openai-chat"\nbase_url = "{url}/v1"\n'
    gate = asyncio.Event()
    with workers(tmp_path, config=config) as stage:
        assert stage.children() == []
        assert stage.server.api("/api/about")["workers"] == 1
        stage.upstream.script = [
            pieces(
                gate,
                head(200, [("Content-Type", "application/json")], framing="chunked"),
                chunk(json.dumps(REPLY).encode()),
                LAST,
            )
        ]
        got: list[int] = []

        def ask(client: Client) -> None:
            got.append(client.ask("cap")[0])

        threads = [threading.Thread(target=ask, args=(client,)) for client in stage.clients(40)]
        for thread in threads:
            thread.start()
        while len(stage.upstream.seen) < 5:
            sleep(0.01)
        stage.upstream._loop.call_soon_threadsafe(gate.set)
        for thread in threads:
            thread.join(60)
        assert (got, len(stage.upstream.connections)) == ([200] * 40, 5)


def test_the_processes_of_a_server_share_a_cap(tmp_path: Path) -> None:
    near = '[[caps]]\nname = "near"\nfilter = "model:near*"\nper = ["model"]\ntokens = 300\n'
    daily = '[[caps]]\nname = "daily"\nfilter = "model:m"\ntokens = 2_000\n'
    with workers(tmp_path, config=CONFIG + daily + near) as stage:
        stage.worker()
        gate, refused = asyncio.Event(), list[str]()
        data = json.dumps(REPLY).encode()
        stage.upstream.script = [pieces(gate, head(200, [("Content-Type", "application/json")]), chunk(data), LAST)]

        def ask(client: Client) -> int:
            answer = client.send(asked("hi", max_tokens=90))
            said = answer.read().decode()
            if answer.status != 200:
                refused.append(said)
                if len(refused) == len(clients) - fitting(said):
                    stage.upstream._loop.call_soon_threadsafe(gate.set)
            return answer.status

        def fitting(said: str) -> int:
            """How many requests fit, by what one of them can take."""
            return 2_000 // int(said.partition("can take up to ")[2].partition(" ")[0])

        clients = stage.clients(40)
        with ThreadPoolExecutor(len(clients)) as aside:
            statuses = list(aside.map(ask, clients))
        assert statuses.count(200) == fitting(refused[0]) == len(stage.upstream.seen)
        assert 5 < statuses.count(200) < 30
        assert slots(stage) > 1
        _expect_notices(stage)


def _expect_notices(stage: WorkerStage) -> None:
    """Whichever process finds a cap nearly reached, the page says so, once."""
    stage.upstream.script = [says({**REPLY, "usage": {"prompt_tokens": 10, "completion_tokens": 260}})]
    models = [f"near{number}" for number in range(8)]
    with stage.person.listening() as told:
        for client, model in zip(stage.clients(8), models, strict=True):
            answer = client.send(json.dumps({**json.loads(asked("hi", max_tokens=90)), "model": model}).encode())
            assert (answer.status, answer.read()[:1]) == (200, b"{")
        notices: list[str] = []
        while len(notices) < len(models):
            if (said := told.get(timeout=60)).get("cap") == "near":
                notices.append(said["message"])
    assert all(said.endswith(" is at 90% of 300 tokens.") for said in notices), notices
    assert sorted(said.partition("(model ")[2][:5] for said in notices) == models
