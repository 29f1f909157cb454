import asyncio
from typing import Any

import msgspec
import pytest

from sightline.evals.api.shapes import MakeWanted, RerunWanted, SaveWanted
from sightline.evals.core.run_state import CaseDone, read
from sightline.evals.core.target import TargetSpec
from tests.eval_stage import ACME, KNOWN, knows
from tests.evals.api.eval_desk import FIXED, EvalDesk, at_desk
from tests.upstream import Upstream, after


@at_desk
async def test_runs_are_listed_newest_first_with_what_each_target_came_to(desk: EvalDesk) -> None:
    assert await desk.call("evals") == []
    await desk.run("e_1")
    await desk.run("e_2", ACME, FIXED)
    second, first = await desk.call("evals?limit=10")
    assert (first["run"], first["name"], first["suite"], first["state"]) == (
        "e_1",
        "capitals",
        "evals/capitals.yaml",
        "ended",
    )
    assert (first["cases"], first["done"], first["of"], first["targets"]) == (3, 3, 3, ["acme"])
    (figures,) = first["summary"]
    assert (figures["passed"], figures["failed"], round(figures["mean"], 3)) == (2, 1, 0.667)
    assert 0 <= figures["low"] < figures["mean"] < figures["high"] <= 1
    assert [each["target"] for each in second["summary"]] == ["acme", "fixed"]
    assert [each["run"] for each in await desk.call("evals?limit=1")] == ["e_2"]
    assert await desk.call("evals?suite=other.yaml") == []
    assert await desk.call("evals?limit=many") == (400, 'limit cannot be "many"')


@at_desk
async def test_a_run_is_a_matrix_of_cases_and_targets(desk: EvalDesk) -> None:
    await desk.run("e_1", ACME, FIXED)
    shown = await desk.call("evals/e_1")
    assert (shown["state"], shown["why"], shown["is_here"], len(shown["file_sha256"])) == (
        "ended",
        "finished",
        False,
        64,
    )
    assert [row["case"] for row in shown["matrix"]] == ["france", "italy", "spain"]
    spain = {cell["target"]: cell["trials"][0] for cell in shown["matrix"][2]["cells"]}
    assert (spain["acme"]["verdict"], spain["fixed"]["verdict"]) == ("fail", "pass")
    assert {(each["target"], each["n"]) for each in shown["graders"]} == {("acme", 1), ("fixed", 1)}
    assert await desk.call("evals/e_9") == (404, "there is no run 'e_9' of evals")


@at_desk
async def test_two_runs_are_compared_and_a_suite_is_followed(desk: EvalDesk) -> None:
    await desk.run("e_1")
    await desk.run("e_2", FIXED)
    shown = await desk.call("evals/compare?a=e_1&b=e_2")
    assert (shown["a"]["target"], shown["b"]["target"], shown["wins"]) == ("acme", "fixed", 1)
    assert await desk.call("evals/compare?a=e_1") == (400, "two runs are compared")
    points = await desk.call("evals/trend?suite=capitals")
    assert [(point["run"], point["target"]) for point in points] == [("e_1", "acme"), ("e_2", "fixed")]
    assert await desk.call("evals/trend") == (400, "no suite is named")


@at_desk
async def test_numbers_are_made_anew_only_when_a_run_has_changed(desk: EvalDesk, upstream: Upstream) -> None:
    await desk.run("e_1")
    before = await desk.call("evals/e_1")
    assert await desk.call("evals/e_1") == before
    upstream.script = upstream.script[:1]
    after = await desk.call("evals/e_1/rerun", {"cases": ["spain"]})
    assert after["run"] == "e_1"


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ({"cases": []}, RerunWanted),
        ({"exchanges": []}, MakeWanted),
        ({"exchanges": ["x"], "from_turn": 0}, MakeWanted),
        ({"file": "a", "yaml": "", "overwrite": True}, SaveWanted),
    ],
)
def test_what_makes_no_sense_is_refused(told: object, kind: type) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(told, kind)


async def until_it_ended(desk: EvalDesk, run: str) -> Any:
    """The run, once nobody drives it any more."""
    await asyncio.gather(*desk.evals.reruns.under_way, return_exceptions=True)
    return await desk.call(f"evals/{run}")


@at_desk
async def test_what_did_not_pass_is_run_again(desk: EvalDesk, upstream: Upstream) -> None:
    await desk.run("e_1", cache=False)
    upstream.script = [knows(upstream, KNOWN | {"Spain": "Madrid"})]
    asked = len(upstream.seen)
    begun = await desk.call("evals/e_1/rerun", {})
    assert (begun["run"], begun["state"]) == ("e_1", "running")
    ended = await until_it_ended(desk, "e_1")
    assert (ended["state"], ended["summary"][0]["passed"], len(upstream.seen) - asked) == ("ended", 3, 1)


@at_desk
async def test_cases_that_are_named_are_run_again_and_others_are_refused(desk: EvalDesk, upstream: Upstream) -> None:
    await desk.run("e_1", cache=False)
    upstream.script = [knows(upstream, KNOWN | {"Spain": "Madrid"})]
    await desk.call("evals/e_1/rerun", {"cases": ["spain"], "target": "acme"})
    ended = await until_it_ended(desk, "e_1")
    assert ended["summary"][0]["passed"] == 3
    assert (await desk.call("evals/e_1/rerun", {"cases": ["rome"]}))[0] == 404
    assert (await desk.call("evals/e_9/rerun", {}))[0] == 404
    assert (await desk.call("evals/e_1/rerun", {"cases": []}))[0] == 422


@at_desk
async def test_what_did_not_pass_on_one_target_is_run_again_there_alone(desk: EvalDesk, upstream: Upstream) -> None:
    wrong = TargetSpec(name="wrong", mock="I do not know.")
    await desk.run("e_1", ACME, wrong, cache=False)
    asked = len(upstream.seen)
    assert (await desk.call("evals/e_1/rerun", {"target": "other"})) == (404, "the run has no target 'other'")
    before = (await desk.stage.evaluation.show("e_1")).version
    await desk.call("evals/e_1/rerun", {"target": "wrong"})
    await until_it_ended(desk, "e_1")
    assert len(upstream.seen) == asked
    lines = await desk.stage.stage.store.logbook.lines("eval:e_1", before)
    again = [fact.result.target for line in lines if isinstance(fact := read(line.data), CaseDone)]
    assert again == ["wrong"] * 3


@at_desk
async def test_two_reruns_at_once_are_one(desk: EvalDesk, upstream: Upstream) -> None:
    await desk.run("e_1", cache=False)
    gate = asyncio.Event()  # the first one is under way until all have asked
    upstream.script = [after(gate, upstream.script[-1])]
    answers = await asyncio.gather(*(desk.call("evals/e_1/rerun", {"cases": ["spain"]}) for _ in range(3)))
    gate.set()
    refused = [answer for answer in answers if isinstance(answer, tuple)]
    assert refused == [(409, "the run e_1 is under way")] * 2
    ended = await until_it_ended(desk, "e_1")
    assert (ended["state"], ended["done"]) == ("ended", 3)


@at_desk
async def test_after_a_change_of_the_file_it_is_another_run_of_these_cases(desk: EvalDesk) -> None:
    await desk.run("e_1")
    desk.file.write_text(desk.file.read_text().replace("value: Madrid", "value: Toledo"))
    begun = await desk.call("evals/e_1/rerun", {"cases": ["spain"]})
    assert begun["run"] != "e_1"
    ended = await until_it_ended(desk, begun["run"])
    assert ([row["case"] for row in ended["matrix"]], ended["summary"][0]["passed"]) == (["spain"], 1)
    failed = await desk.call("evals/e_1/rerun", {})
    assert [row["case"] for row in failed["matrix"]] == ["spain"]
    await until_it_ended(desk, failed["run"])
    desk.file.write_text(desk.file.read_text().replace("id: spain", "id: portugal"))
    assert await desk.call("evals/e_1/rerun", {"cases": ["spain"]}) == (409, "the suite no longer has spain")
    desk.file.write_text("tests: []")
    assert (await desk.call("evals/e_1/rerun", {"cases": ["spain"]}))[0] == 422


@at_desk
async def test_without_anything_that_failed_there_is_nothing_to_run_anew(desk: EvalDesk) -> None:
    await desk.run("e_1", cases=("france",))
    desk.file.write_text(desk.file.read_text() + "# changed\n")
    assert await desk.call("evals/e_1/rerun", {}) == (409, "there is nothing to run again")
    desk.file.unlink()
    again = await desk.call("evals/e_1/rerun", {"cases": ["france"]})
    assert again["run"] == "e_1"
    await until_it_ended(desk, "e_1")


@at_desk
async def test_a_run_is_stopped_and_left_when_the_server_ends(desk: EvalDesk, upstream: Upstream) -> None:
    await desk.run("e_1", cache=False, workers=1)
    begun, gate = asyncio.Event(), asyncio.Event()
    upstream.script = [after(gate, knows(upstream, KNOWN), begun)]
    await desk.call("evals/e_1/rerun", {"cases": ["france", "italy"]})
    await begun.wait()
    assert (await desk.call("evals/e_1"))["is_here"]
    assert await desk.call("evals/e_1/rerun", {}) == (409, "the run e_1 is under way")
    assert (await desk.call("evals/e_1/stop", {}))["state"] == "running"
    gate.set()
    stopped = await until_it_ended(desk, "e_1")
    assert (stopped["state"], stopped["done"]) == ("stopped", 2)
    assert (await desk.call("evals/e_1/stop", {}))[0] == 409
    begun.clear()
    gate.clear()
    await desk.call("evals/e_1/rerun", {"cases": ["italy"]})
    await begun.wait()
    await desk.evals.close()
    assert (await desk.call("evals/e_1"))["state"] == "stopped"
