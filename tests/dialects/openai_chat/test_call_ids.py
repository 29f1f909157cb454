from sightline.dialects.openai_chat.choices import CallIds


def test_an_id_that_was_given_stays():
    assert CallIds(0).of("functions.f:0", 0, "resp_1") == "functions.f:0"


def test_made_ids_differ_within_a_reply_and_between_replies():
    ids, other = CallIds(0), CallIds(1)
    assert [ids.of("", number, "resp_1") for number in (0, 1)] == ["call_resp_1_0", "call_resp_1_1"]
    assert other.of("", 0, "resp_1") == "call_resp_1_1_0"
    assert CallIds(0).of("", 0, "resp_2") == "call_resp_2_0"
    assert CallIds(0).of("", 0, None) == "call_0"


def test_a_made_id_is_none_that_was_given_before():
    ids = CallIds(0)
    assert [ids.of("call_1", 0, ""), ids.of("", 1, "")] == ["call_1", "call_1_"]


def test_a_made_id_is_short_and_plain_whatever_the_reply_is_called():
    first, second = (CallIds(0).of("", 0, f"chatcmpl-{'x' * 90}é:{number}") for number in (1, 2))
    assert first != second
    assert len(first) <= 40
    assert first.removeprefix("call_").removesuffix("_0").isalnum()
