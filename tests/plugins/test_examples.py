"""Each example is one file, keeps its laws, and does what its first lines say."""

import hmac
import json
import shutil
from pathlib import Path
from urllib.parse import quote

import pytest

from sightline.agent.core.steps import RunnableCall
from sightline.agent.tools.opening import open_toolsets
from sightline.app.configuration import Configuration, configuration
from sightline.app.tools import tool_surroundings
from sightline.cli.program import main
from sightline.dialects.registry import unregister
from sightline.evals.core.graders.grade import remove_grader
from sightline.filters.fields import remove_field
from tests.background import upstream_in_background
from tests.gateway_server import served
from tests.http_call import call
from tests.plugins.test_signed_requests import REPLY, post
from tests.relay_stage import REQUESTS
from tests.upstream import says

EXAMPLES = Path(__file__).parents[2] / "examples" / "plugins"


def install(folder: Path, name: str) -> str:
    (folder / "plugins").mkdir()
    shutil.copy(EXAMPLES / name, folder / "plugins")
    return f'[plugins]\nuse = ["{name}"]\n'


def load(folder: Path, text: str) -> Configuration:
    (folder / "sightline.toml").write_text(text)
    return configuration(str(folder / "sightline.toml"))


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.stem)
def test_each_example_passes_its_conformance_run(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["plugin", "test", str(file)]) == 0
    assert " ok " in capsys.readouterr().out


def test_the_signer_signs_what_a_client_sends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_SIGNING_SECRET", "acme-secret-0123456789")
    with upstream_in_background() as upstream:
        upstream.script = [says(REPLY)]
        text = install(tmp_path, "hmac_signer.py")
        text += f'[providers.acme]\nbase_url = "{upstream.url}/v1"\nsign = "acme-hmac"\n'
        text += 'sign_env = ["ACME_SIGNING_SECRET"]\n'
        with served(tmp_path, text) as server:
            assert b"Hello" in post(server, "/p/acme/v1/chat/completions", REQUESTS["openai-chat"])
    seen = upstream.seen[0]
    signed = f"{seen.header('x-acme-time')}\n{seen.target}\n".encode() + seen.body
    assert seen.header("x-acme-signature") == hmac.digest(b"acme-secret-0123456789", signed, "sha256").hex()
    assert not seen.header("authorization")


def test_the_dialect_is_spoken_to_its_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "acme-key-0123456789")
    with upstream_in_background() as upstream:
        upstream.script = [says(REPLY)]
        text = install(tmp_path, "acme_dialect.py")
        text += f'[providers.acme]\ndialect = "acme-chat"\nbase_url = "{upstream.url}"\nkey_env = "ACME_API_KEY"\n'
        try:
            with served(tmp_path, text) as server:
                assert b"Hello" in post(server, "/p/acme/v1/messages", REQUESTS["anthropic"])
        finally:
            unregister("acme-chat")
    seen = upstream.seen[0]
    assert (seen.target, seen.header("x-acme-key")) == ("/v2/acme/generate", "acme-key-0123456789")
    assert seen.json()["acme_version"] == 2


def test_a_dialect_of_one_text_answers_clients_of_another(tmp_path: Path) -> None:
    with upstream_in_background() as upstream:
        upstream.script = [says({"answer": "Hello there"}), says({"answer": "Hello there"})]
        text = install(tmp_path, "one_text_dialect.py")
        text += f'[providers.tiny]\ndialect = "one-text"\nbase_url = "{upstream.url}"\n'
        asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        try:
            with served(tmp_path, text) as server:
                assert b"Hello there" in post(server, "/p/tiny/v1/messages", asked)
                assert b"Hello there" in post(server, "/p/tiny/v1/messages", {**asked, "stream": True})
        finally:
            unregister("one-text")
    assert [(seen.target, seen.json()) for seen in upstream.seen] == [("/answer", {"model": "m", "prompt": "hi"})] * 2


async def test_the_tools_are_offered_and_run(tmp_path: Path) -> None:
    loaded = load(tmp_path, install(tmp_path, "unit_tools.py") + '[tools.units]\nplugin = "units"\nallow = ["*"]\n')

    opened = await open_toolsets(loaded.settings.tools, tool_surroundings(loaded))
    assert [each.name for each in opened.definitions] == ["to_celsius", "to_kilometres"]
    assert opened.places["to_celsius"] == "plugin units"
    outcome = await opened.use(
        RunnableCall(key="k", id="c", name="to_celsius", arguments={"fahrenheit": 212}), lambda _text: None
    )
    assert "100" in str(outcome)
    await opened.close()


def test_the_models_of_the_catalogue_are_known_and_the_users_own_tables_win(tmp_path: Path) -> None:
    loaded = load(tmp_path, install(tmp_path, "house_models.py") + '[providers.house]\ntitle = "Ours"\n')
    house = loaded.catalog.providers["house"]
    assert (house.base_url, house.title) == ("http://127.0.0.1:9000/v1", "Ours")
    assert loaded.choice("house/house-large").facts.context_window == 65536


def test_the_hook_logs_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "failures.log"
    monkeypatch.setenv("FAILURE_LOG", str(log))
    with upstream_in_background() as upstream:
        upstream.script = [says({"error": {"message": "no such model"}}, 404), says(REPLY)]
        text = install(tmp_path, "failure_log.py") + f'[providers.acme]\nbase_url = "{upstream.url}/v1"\n'
        with served(tmp_path, text) as server:
            url = f"{server.url}/p/acme/v1/chat/completions"
            assert call("POST", url, REQUESTS["openai-chat"]).status == 404
            post(server, "/p/acme/v1/chat/completions", REQUESTS["openai-chat"])
    (line,) = log.read_text().splitlines()
    assert "no such model" in line


def test_the_format_writes_the_record_and_reads_it_into_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with upstream_in_background() as upstream:
        upstream.script = [says(REPLY)]
        text = install(tmp_path, "url_list.py") + f'[providers.acme]\nbase_url = "{upstream.url}/v1"\n'
        with served(tmp_path, text) as server:
            post(server, "/p/acme/v1/chat/completions", REQUESTS["openai-chat"])
    file, options = tmp_path / "calls.txt", ["--config", str(tmp_path / "sightline.toml")]
    assert main(["export", "--as", "url-list", "-o", str(file), "--data", str(tmp_path / "data"), *options]) == 0
    first, line = file.read_text().splitlines()
    assert first == "# url-list 1"
    assert json.loads(line)[1:3] == ["POST", f"{upstream.url}/v1/chat/completions"]
    assert main(["import", str(file), "--data", str(tmp_path / "other"), *options]) == 0
    assert "1 exchange imported" in capsys.readouterr().err
    assert main(["export", "--as", "xml", *options]) == 2
    assert "url-list" in capsys.readouterr().err


def ask(folder: Path, text: str, sessions: dict[str, str]) -> None:
    """Record one exchange for each session, with these words."""
    with upstream_in_background() as upstream:
        upstream.script = [says(REPLY)]
        with served(folder, text + f'[providers.acme]\nbase_url = "{upstream.url}/v1"\n') as server:
            for session, words in sessions.items():
                body = {"model": "m", "messages": [{"role": "user", "content": words}]}
                post(server, f"/p/acme/s/{quote(session, safe='')}/v1/chat/completions", body)


def test_the_field_is_asked_for_in_filters_on_the_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        ask(tmp_path, install(tmp_path, "team_field.py"), {"billing": "1", "billing.daily": "2", "shop.x": "3"})
        place = ["--data", str(tmp_path / "data"), "--config", str(tmp_path / "sightline.toml")]
        assert main(["traffic", "team:bill*", "--json", *place]) == 0
        assert [json.loads(line)["session"] for line in capsys.readouterr().out.splitlines()] == ["billing.daily"]
        assert main(["export", "team:shop", "-o", str(tmp_path / "shop.jsonl"), *place]) == 0
        assert main(["forget", "team:shop", "--dry-run", *place]) == 0
        assert "1 exchange would be forgotten" in capsys.readouterr().err
    finally:
        remove_field("team")


ASKING = """from sightline.plugins import ExchangeField, Plugin
def read(exchange):
    return "refund" if exchange.says("REF*nd") and not exchange.says("refund?") else exchange.value("elapsed") and None
PLUGIN = Plugin(name="topic", fields={"wish": ExchangeField("text", "what is wanted", read)})
"""


def test_a_field_can_look_for_words_that_the_filter_does_not_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "wish.py").write_text(ASKING)
    place = ["--data", str(tmp_path / "data"), "--config", str(tmp_path / "sightline.toml")]
    try:
        asked = {"one": "A refund, please.", "two": "Good day.", "three": "A refund? Maybe."}
        ask(tmp_path, '[plugins]\nuse = ["wish.py"]\n', asked)
        for wanted in ("wish:refund", "wish:refund & text:please", "wish:refund & !text:nowhere"):
            assert main(["traffic", wanted, "--json", *place]) == 0
            assert [json.loads(line)["session"] for line in capsys.readouterr().out.splitlines()] == ["one"], wanted
    finally:
        remove_field("wish")


def test_the_field_is_offered_while_one_types_and_is_for_lists_alone(tmp_path: Path) -> None:
    try:
        with served(tmp_path, install(tmp_path, "team_field.py")) as server:
            offers = server.api("/api/filter?text=te&at=2")["completions"]
            helped = [(each["text"], each["help"]) for each in offers]
            assert ("team:", "the team that the session belongs to") in helped
            refused = server.api("/api/filter?text=team:x&at=6&for=rules")["error"]
            assert "means nothing for rules" in refused["message"]
    finally:
        remove_field("team")


def test_the_redactor_finds_what_no_pattern_can(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask(tmp_path, install(tmp_path, "customer_numbers.py"), {"one": "Refund 12345670? No, 12345678."})
    place = ["--data", str(tmp_path / "data"), "--config", str(tmp_path / "sightline.toml")]
    file, other = tmp_path / "shared.har", tmp_path / "other.har"
    assert main(["export", "--redact", "--as", "har", "-o", str(file), *place]) == 0
    assert "customer: 12345678 → customer-1" in capsys.readouterr().err  # 1 + 2 + … + 7 is 28
    assert "Refund 12345670? No, customer-1." in file.read_text()
    (tmp_path / "plugins" / "customer_numbers.py").write_text(
        "from sightline.plugins import Plugin\nPLUGIN = Plugin(name='c', redactors={'customer': lambda text: 1 / 0})"
    )
    assert main(["export", "--redact", "--as", "har", "-o", str(other), *place]) != 0
    assert "the plug-in 'customer_numbers.py' (redactor customer) failed" in capsys.readouterr().err
    assert not other.exists()


SUITE = """
tests:
  - id: plain
    input: "Say something."
    assertions:
      - type: plain-words
        jargon: {jargon}
"""


@pytest.mark.parametrize(
    ("answer", "jargon", "status", "words"),
    [
        ("We build things.", "[synergy]", 0, "Mean score 1"),
        ("Synergy is synergy.", "[synergy]", 1, "synergy"),
        ("We build things.", "many", 1, "jargon is not a list of words"),
    ],
)
def test_the_grader_grades_the_cases_of_a_suite(
    tmp_path: Path, answer: str, jargon: str, status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reply = {**REPLY, "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": answer}}]}
    suite = tmp_path / "words.eval.yaml"
    suite.write_text(SUITE.format(jargon=jargon))
    with upstream_in_background() as upstream:
        upstream.script = [says(reply)]
        tables = f'[providers.acme]\nbase_url = "{upstream.url}/v1"\n'
        try:
            load(tmp_path, install(tmp_path, "plain_words_grader.py") + tables)
            place = ["--config", str(tmp_path / "sightline.toml"), "--data", str(tmp_path / "data")]
            ended = main(["eval", "run", str(suite), "--target", "acme/m", *place])
        finally:
            remove_grader("plain-words")
    said = capsys.readouterr()
    assert ended == status, said
    assert words in said.out + said.err
