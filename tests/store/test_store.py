from sightline.store.sqlite import SqliteStore
from sightline.store.store import Store


def test_a_store_has_eight_verbs_and_its_logs_and_ours_has_them_all() -> None:
    verbs = {name for name in vars(Store) if not name.startswith("_")}
    assert verbs - {"trouble", "logbook"} == {"record", "settle", "facts", "body", "find", "prune", "export", "close"}
    assert verbs <= set(dir(SqliteStore))
