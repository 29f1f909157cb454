from sightline.dialects.raw.request_read import problems, read_request

USER = {"role": 1, "content": "hi"}
CALL = {"role": 2, "content": [], "toolCalls": [{"id": "a", "type": "function", "function": {"name": "f"}}]}
RESULT = {"role": 3, "toolCallId": "a", "content": "x"}


def pointers(document):
    return [problem.pointer for problem in problems(read_request(document))]


def test_a_conversation_is_fine():
    assert pointers([USER, CALL, RESULT, USER]) == []


def test_there_must_be_something_to_answer():
    system = {"role": 0, "content": "s"}
    assert pointers([]) == [""]
    assert pointers([system]) == [""]
    assert pointers({"messages": [system]}) == ["/messages"]


def test_calls_and_results_must_stand_together():
    assert pointers([USER, RESULT]) == ["/1"]
    assert pointers([USER, CALL]) == ["/1/toolCalls/0"]
    assert pointers([USER, CALL, USER, RESULT]) == ["/1/toolCalls/0", "/3"]
