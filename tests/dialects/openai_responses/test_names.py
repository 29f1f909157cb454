from sightline.dialects.openai_responses.names import BOOKKEEPING, CALLS, OUTPUTS, STRIDE


def test_every_call_has_an_item_that_answers_it():
    assert {f"{kind}_output" for kind in CALLS} == set(OUTPUTS)


def test_parts_are_numbered_in_the_order_of_the_output():
    places = [(0, 0), (0, 1), (0, 999), (1, 0), (2, 5)]
    assert sorted(places, key=lambda place: place[0] * STRIDE + place[1]) == places


def test_what_a_request_asks_is_no_bookkeeping():
    assert not BOOKKEEPING & {"truncation", "prompt", "conversation", "moderation", "max_tool_calls", "background"}
