from sightline.store.postgres_sink import LEFT_BEHIND
from tests.postgres_server import execute, fetch
from tests.store.postgres_tables import sink, tables
from tests.store.traffic import NOON, chat_body, received, whole

TITLES = "SELECT id, title FROM sightline.exchanges ORDER BY id"
UNREAD = "SELECT id FROM sightline.exchanges WHERE todo > 0 ORDER BY id"


def values(url: str, query: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in fetch(url, query)]


def test_requests_and_replies_are_read_a_few_at_a_time() -> None:
    with tables() as url, sink(url) as target:
        for number in range(20):
            target.apply(whole(f"x_{number:02}", chat_body(f"question {number}"), "answer"))
        assert target.tidy()
        assert len(values(url, UNREAD)) == 4
        assert not target.tidy()
        assert values(url, UNREAD) == []
        assert values(url, TITLES) == [(f"x_{number:02}", f"question {number}") for number in range(20)]


def test_a_request_is_read_before_its_reply_is_there() -> None:
    with tables() as url, sink(url) as target:
        entries = whole("x_1", chat_body("question"), "an", "swer")
        target.apply(entries[:2])
        assert not target.tidy()
        assert values(url, TITLES) == [("x_1", "question")]
        target.apply(entries[2:])
        assert not target.tidy()
        texts = "SELECT part, words FROM sightline.texts ORDER BY part"
        assert values(url, texts) == [(0, "question"), (1, "answer")]


def test_instructions_are_kept_in_the_first_exchange_that_has_them() -> None:
    with tables() as url, sink(url) as target:
        for exchange in ("x_1", "x_2"):
            target.apply(received(exchange, chat_body("hi", exchange, "go on", system="Be brief.")))
        assert not target.tidy()
        texts = "SELECT exchange, words FROM sightline.texts ORDER BY exchange"
        assert values(url, texts) == [("x_1", "Be brief.\ngo on"), ("x_2", "go on")]


def test_what_a_replica_leaves_unread_is_read_by_another_after_a_while() -> None:
    with tables() as url, sink(url, "gone") as gone:
        gone.apply(whole("x_1", chat_body("question"), "answer"))
        with sink(url, "other", now=NOON + LEFT_BEHIND) as soon:
            assert not soon.tidy()
            assert values(url, UNREAD) == [("x_1",)]
        with sink(url, "other", now=NOON + LEFT_BEHIND + 1) as later:
            assert not later.tidy()
            assert values(url, UNREAD) == []


def test_a_request_whose_body_is_not_there_has_no_words() -> None:
    with tables() as url, sink(url) as target:
        _, fact = received("x_1", chat_body("hi"))
        target.apply([fact])
        assert not target.tidy()
        assert values(url, TITLES) == [("x_1", "")]


def test_words_that_cannot_be_stored_keep_back_no_others() -> None:
    with tables() as url, sink(url) as target:
        execute(url, "ALTER TABLE sightline.texts ADD CONSTRAINT never CHECK (exchange <> 'x_1')")
        for exchange in ("x_1", "x_2"):
            target.apply(whole(exchange, chat_body("question"), "answer"))
        assert not target.tidy()
        assert values(url, UNREAD) == []
        assert values(url, "SELECT DISTINCT exchange FROM sightline.texts") == [("x_2",)]
