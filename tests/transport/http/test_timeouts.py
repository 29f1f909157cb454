from sightline.transport.http.timeouts import Timeouts


def test_a_model_may_think_for_long_but_a_connection_is_made_quickly() -> None:
    assert Timeouts() == Timeouts(connect=10.0, first_byte=600.0, idle=300.0)
