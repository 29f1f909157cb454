from pathlib import Path

from tests.eval_stage import ACME
from tests.evals.api.eval_desk import FIXED, EvalDesk, told
from tests.upstream import Upstream


def test_runs_are_listed_newest_first_with_what_each_target_came_to(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, _upstream: Upstream) -> None:
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

    told(story, tmp_path)


def test_a_run_is_a_matrix_of_cases_and_targets(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, _upstream: Upstream) -> None:
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

    told(story, tmp_path)


def test_two_runs_are_compared_and_a_suite_is_followed(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, _upstream: Upstream) -> None:
        await desk.run("e_1")
        await desk.run("e_2", FIXED)
        shown = await desk.call("evals/compare?a=e_1&b=e_2")
        assert (shown["a"]["target"], shown["b"]["target"], shown["wins"]) == ("acme", "fixed", 1)
        assert await desk.call("evals/compare?a=e_1") == (400, "two runs are compared")
        points = await desk.call("evals/trend?suite=capitals")
        assert [(point["run"], point["target"]) for point in points] == [("e_1", "acme"), ("e_2", "fixed")]
        assert await desk.call("evals/trend") == (400, "no suite is named")

    told(story, tmp_path)


def test_numbers_are_made_anew_only_when_a_run_has_changed(tmp_path: Path) -> None:
    async def story(desk: EvalDesk, upstream: Upstream) -> None:
        await desk.run("e_1")
        before = await desk.call("evals/e_1")
        assert await desk.call("evals/e_1") == before
        upstream.script = upstream.script[:1]
        after = await desk.call("evals/e_1/rerun", {"cases": ["spain"]})
        assert after["run"] == "e_1"

    told(story, tmp_path)
