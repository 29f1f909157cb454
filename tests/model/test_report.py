from sightline.model.report import Addition, Loss, Report


def test_losses_and_additions_stand_in_the_order_in_which_they_were_met() -> None:
    report = Report()
    report.lose("/b", "b", "no b", "option")
    report.lose("/a", "a", "no a", "identity")
    report.add("/max_tokens", "limit", "demanded")
    assert report.losses == (Loss("/b", "b", "no b", "option"), Loss("/a", "a", "no a", "identity"))
    assert report.additions == (Addition("/max_tokens", "limit", "demanded", "option"),)


def test_the_same_loss_is_told_once() -> None:
    report = Report()
    for _ in range(3):
        report.lose("/a", "a", "no a", "content")
    assert len(report.losses) == 1


def test_strict_refuses_on_content_and_options_and_not_on_identity() -> None:
    report = Report()
    report.lose("/id", "id", "no ids", "identity")
    assert not report.refusals
    assert report.refusal_count == 0
    report.lose("/seed", "seed", "no seed", "option")
    report.lose("/messages/0", "words", "no words", "content")
    assert tuple(loss.pointer for loss in report.refusals) == ("/seed", "/messages/0")
    assert report.refusal_count == 2
