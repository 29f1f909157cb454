import asyncio
from pathlib import Path
from typing import Any

from sightline.evals.core.run_state import CaseDone, read
from sightline.evals.core.target import TargetSpec
from tests.eval_stage import ACME, KNOWN, knows
from tests.evals.api.eval_desk import EvalDesk, told
from tests.upstream import Talk, Upstream


async def until_it_ended(desk: EvalDesk, run: str) -> Any:
    """The run, once nobody drives it any more."""
    await asyncio.gather(*desk.evals.reruns._tasks.values(), return_exceptions=True)
    return await desk.call(f"evals/{run}")


def test_what_did_not_pass_is_run_again(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, upstream: Upstream) -> None:
        await desk.run("e_1", cache=False)
        upstream.script = [knows(upstream, KNOWN | {"Spain": "Madrid"})]
        asked = len(upstream.seen)
        begun = await desk.call("evals/e_1/rerun", {})
        assert (begun["run"], begun["state"]) == ("e_1", "running")
        ended = await until_it_ended(desk, "e_1")
        assert (ended["state"], ended["summary"][0]["passed"], len(upstream.seen) - asked) == ("ended", 3, 1)

    told(story, tmp_path)


def test_cases_that_are_named_are_run_again_and_others_are_refused(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, upstream: Upstream) -> None:
        await desk.run("e_1", cache=False)
        upstream.script = [knows(upstream, KNOWN | {"Spain": "Madrid"})]
        await desk.call("evals/e_1/rerun", {"cases": ["spain"], "target": "acme"})
        ended = await until_it_ended(desk, "e_1")
        assert ended["summary"][0]["passed"] == 3
        assert (await desk.call("evals/e_1/rerun", {"cases": ["rome"]}))[0] == 404
        assert (await desk.call("evals/e_9/rerun", {}))[0] == 404
        assert (await desk.call("evals/e_1/rerun", {"cases": []}))[0] == 422

    told(story, tmp_path)


def test_what_did_not_pass_on_one_target_is_run_again_there_alone(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, upstream: Upstream) -> None:
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

    told(story, tmp_path)


def test_two_reruns_at_once_are_one(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, upstream: Upstream) -> None:
        await desk.run("e_1", cache=False)
        gate = asyncio.Event()  # the first one is under way until all have asked
        model = upstream.script[-1]

        async def waits(talk: Talk) -> None:
            await gate.wait()
            await model(talk)

        upstream.script = [waits]
        answers = await asyncio.gather(*(desk.call("evals/e_1/rerun", {"cases": ["spain"]}) for _ in range(3)))
        gate.set()
        refused = [answer for answer in answers if isinstance(answer, tuple)]
        assert refused == [(409, "the run e_1 is under way")] * 2
        ended = await until_it_ended(desk, "e_1")
        assert (ended["state"], ended["done"]) == ("ended", 3)

    told(story, tmp_path)


def test_after_a_change_of_the_file_it_is_another_run_of_these_cases(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, _upstream: Upstream) -> None:
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

    told(story, tmp_path)


def test_without_anything_that_failed_there_is_nothing_to_run_anew(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, _upstream: Upstream) -> None:
        await desk.run("e_1", cases=("france",))
        desk.file.write_text(desk.file.read_text() + "# changed\n")
        assert await desk.call("evals/e_1/rerun", {}) == (409, "there is nothing to run again")
        desk.file.unlink()
        again = await desk.call("evals/e_1/rerun", {"cases": ["france"]})
        assert again["run"] == "e_1"
        await until_it_ended(desk, "e_1")

    told(story, tmp_path)


def test_a_run_is_stopped_and_left_when_the_server_ends(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, upstream: Upstream) -> None:
        await desk.run("e_1", cache=False, workers=1)
        begun, gate = asyncio.Event(), asyncio.Event()

        async def slow(talk: Talk) -> None:
            begun.set()
            await gate.wait()
            await knows(upstream, KNOWN)(talk)

        upstream.script = [slow]
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

    told(story, tmp_path)
