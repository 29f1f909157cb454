from sightline.errors import Code, Fault
from sightline.evals.core.making.case import Conversation, RecordedExchange, RecordedTurn, join_exchanges, turns_of
from sightline.model.message import Message
from sightline.model.options import Options
from sightline.model.parts import Text, ToolCall, ToolResult
from sightline.model.reply import Choice, Reply
from sightline.model.request import Request

SYSTEM = Message("system", (Text("Be brief."),))
HELLO = Message("user", (Text("Hello"),))
HI = Message("assistant", (Text("Hi."),))
BYE = Message("user", (Text("Bye"),))
CALL = Message("assistant", (ToolCall("c1", "look", "{}"),))
RESULT = Message("user", (ToolResult("c1", (Text("seen"),)),))


def replied(*parts: Text) -> Reply:
    return Reply(choices=(Choice(parts=parts),))


def test_one_exchange_is_its_request_and_what_was_said() -> None:
    found = join_exchanges([RecordedExchange(Request("m", (HELLO,)), replied(Text("Hi.")))])
    assert found == Conversation((HELLO,), (HI,))


def test_a_reply_that_broke_off_or_is_empty_says_nothing() -> None:
    broken = Reply(choices=(Choice(parts=(Text("Hi"),)),), fault=Fault(Code.NETWORK, "gone"))
    for reply in (None, broken, replied()):
        assert RecordedExchange(Request("m", (HELLO,)), reply).said == ()


def test_the_last_request_has_the_whole_conversation() -> None:
    first = RecordedExchange(Request("m", (HELLO,)), replied(Text("Hi.")))
    second = RecordedExchange(Request("m", (HELLO, HI, BYE)), replied(Text("Bye.")))
    assert join_exchanges([first, second]) == Conversation((HELLO, HI, BYE), second.said)


def test_messages_that_a_client_no_longer_sends_are_counted() -> None:
    first = RecordedExchange(Request("m", (SYSTEM, HELLO, HI)))
    assert join_exchanges([first, RecordedExchange(Request("m", (BYE,)))]).forgotten == 2


def test_a_conversation_that_the_provider_keeps_is_put_together() -> None:
    first = RecordedExchange(Request("m", (HELLO,)), replied(Text("Hi.")))
    second = RecordedExchange(
        Request("m", (BYE,), options=Options(previous_response_id="resp_1")), replied(Text("Bye."))
    )
    assert join_exchanges([first, second]).messages == (HELLO, HI, BYE)
    assert not join_exchanges([first, second]).is_continued
    assert join_exchanges([second]).is_continued


def test_a_turn_lasts_until_the_user_speaks_again() -> None:
    before, turns = turns_of([SYSTEM, HELLO, BYE, CALL, RESULT, HI, HELLO])
    assert before == (SYSTEM,)
    assert turns == (RecordedTurn((HELLO, BYE), (CALL, RESULT, HI)), RecordedTurn((HELLO,), ()))


def test_where_nobody_speaks_there_is_no_turn() -> None:
    assert turns_of([SYSTEM]) == ((SYSTEM,), ())
