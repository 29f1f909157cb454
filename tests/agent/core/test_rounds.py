from sightline.agent.core.rounds import FinishedRun, Round
from sightline.model.parts import Opaque, Text, Thinking
from tests.loop_stage import question, reply


def test_a_round_shows_what_its_reply_holds() -> None:
    thought, search = Thinking("Hm."), Opaque("anthropic", {"type": "server_tool_use"})
    done = Round(number=1, reply=reply(thought, Text("a"), search, Text("b")))
    assert (done.text, done.thinking, done.server) == ("ab", (thought,), (search,))
    assert (done.finish, done.marker) == ("stop", "r_1")


def test_the_last_reply_is_that_of_the_run() -> None:
    first, second = Round(number=1, reply=reply()), Round(number=2, reply=reply(Text("x")))
    assert FinishedRun(why="answered", request=question()).reply is None
    assert FinishedRun(why="answered", request=question(), rounds=(first, second)).reply == second.reply
