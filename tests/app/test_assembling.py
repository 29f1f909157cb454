from tests.server.running import running


def test_a_server_that_answers_from_the_record_holds_nothing_and_says_so() -> None:
    with running() as server:
        assert server.api("/api/about")[1]["places"] == ["traffic"]
        for path in ("/api/rules", "/api/masks", "/api/interception", "/api/holds"):
            assert server.api(path)[0] == 404
        for call in ("edits", "release", "drop", "answer"):
            status, told = server.api(f"/api/exchanges/x_1/{call}", "POST")
            assert (status, "--replay" in told["error"]["hint"]) == (409, True)
