import pytest

from sightline.catalog.facts import Facts
from sightline.catalog.fitting import ReasoningForm, effort_for, fit_to_model, is_reasoning, misfits, nearest_effort
from sightline.model.parts import Citation, Document, Image, Link, Part, Text, ToolCall
from sightline.model.report import Loss, Report
from sightline.model.request import Message, Options, Reasoning, Request, ToolChoice


def fitted(
    facts: Facts, form: ReasoningForm = "effort", *, choice: ToolChoice | None = None, **options: object
) -> tuple[Request, tuple[Loss, ...]]:
    report = Report()
    request = Request(model="m-1", tool_choice=choice, options=Options(**options))  # type: ignore[arg-type]
    return fit_to_model(request, facts, form, report), report.losses


# --- length and the last word -----------------------------------------------------------------------


def test_a_limit_that_the_model_cannot_reach_is_lowered() -> None:
    request, losses = fitted(Facts(max_output=16_384), max_tokens=32_000, places={"max_tokens": "/max_tokens"})
    assert request.options.max_tokens == 16_384
    assert [(loss.pointer, loss.what, loss.why, loss.severity) for loss in losses] == [
        ("/max_tokens", "a limit of 32000 tokens", "m-1 writes 16384 at most", "option")
    ]
    for facts, asked in ((Facts(max_output=9), 9), (Facts(max_output=9), None), (Facts(), 99)):
        request, losses = fitted(facts, max_tokens=asked)
        assert (request.options.max_tokens, losses) == (asked, ())


def test_an_answer_that_is_begun_is_followed_by_the_user_where_the_model_would_refuse_it() -> None:
    user, begun = Message("user", (Text("Hi."),)), Message("assistant", (Text("It is"),), at="/messages/1")
    refusing = Facts(prefill=False)

    def told(facts: Facts, *messages: Message) -> tuple[tuple[Message, ...], Report]:
        report = Report()
        return fit_to_model(Request(messages=messages), facts, "mode", report).messages, report

    messages, report = told(refusing, user, begun)
    assert messages == (user, begun, Message("user", (Text("Continue."),)))
    assert [(loss.pointer, loss.severity) for loss in report.losses] == [("/messages/1", "content")]
    assert [addition.what for addition in report.additions] == ["a user's message behind it: Continue."]
    called = Message("assistant", (ToolCall("c", "f", "{}"),))
    for facts, last in ((Facts(), begun), (Facts(prefill=True), begun), (refusing, user), (refusing, called)):
        messages, report = told(facts, user, last)
        assert (messages, report.losses, report.additions) == ((user, last), (), ())
    assert told(refusing)[0] == ()


# --- options ----------------------------------------------------------------------------------------


def test_what_a_model_refuses_is_left_out_and_reported_by_its_place() -> None:
    facts = Facts(refuses=("temperature", "top_k", "stop"))
    request, losses = fitted(
        facts,
        temperature=0.3,
        top_k=5,
        top_p=0.9,
        stop=("END",),
        places={"temperature": "/generationConfig/temperature"},
    )
    assert request.options == Options(top_p=0.9, places=request.options.places)
    assert losses == (
        Loss("/generationConfig/temperature", "temperature 0.3", "m-1 does not take it", "option"),
        Loss("/top_k", "top_k 5", "m-1 does not take it", "option"),
        Loss("/stop", "stop", "m-1 does not take it", "option"),
    )


def test_a_default_value_goes_too_but_its_loss_changes_no_answer() -> None:
    facts = Facts(refuses=("temperature", "presence_penalty", "top_k"))
    request, losses = fitted(facts, temperature=1, presence_penalty=0.0, top_k=1)
    assert request.options == Options()
    assert [loss.severity for loss in losses] == ["identity", "identity", "option"]


def test_unsupported_option_that_was_not_requested_is_no_loss() -> None:
    assert fitted(Facts(refuses=("temperature", "stop")), top_p=0.5)[1] == ()


def test_what_is_not_known_of_a_model_is_allowed() -> None:
    asked = {"temperature": 0.3, "top_p": 0.5, "reasoning": Reasoning(mode="on", effort="max", budget=9)}
    for form in ("effort", "mode", "level"):
        request, losses = fitted(Facts(), form, choice=ToolChoice("required"), **asked)
        assert (request.options, losses) == (Options(**asked), ())
        assert request.tool_choice == ToolChoice("required")


def test_temperature_goes_before_top_p_where_only_one_is_taken() -> None:
    facts = Facts(one_sampler=True)
    request, losses = fitted(facts, temperature=0.3, top_p=0.9)
    assert request.options == Options(temperature=0.3)
    assert losses == (Loss("/top_p", "top_p 0.9", "m-1 takes temperature or top_p, not both", "option"),)
    assert fitted(facts, top_p=0.9)[1] == ()
    request, losses = fitted(Facts(one_sampler=True, refuses=("temperature",)), temperature=0.3, top_p=0.9)
    assert request.options == Options(top_p=0.9)


@pytest.mark.parametrize(
    ("reasoning", "unasked", "efforts", "is_left_out"),
    [
        (None, None, None, True),
        (None, True, None, True),
        (None, False, None, False),
        (None, False, ("low", "high"), True),
        (Reasoning(effort="none"), None, None, False),
        (Reasoning(mode="off"), True, ("none", "low"), False),
        (Reasoning(effort="low"), False, ("none", "low"), True),
    ],
)
def test_some_options_are_refused_only_while_the_model_reasons(reasoning, unasked, efforts, is_left_out) -> None:
    facts = Facts(refuses_while_reasoning=("temperature",), reasons_unasked=unasked, efforts=efforts)
    assert is_reasoning(Options(reasoning=reasoning), facts) is is_left_out
    request, losses = fitted(facts, temperature=0.2, reasoning=reasoning)
    assert (request.options.temperature is None) is is_left_out
    assert [loss.why for loss in losses] == ["m-1 does not take it while it reasons"] * is_left_out


def test_an_option_that_is_refused_twice_is_reported_once() -> None:
    facts = Facts(refuses=("temperature",), refuses_while_reasoning=("temperature", "top_p"))
    _, losses = fitted(facts, temperature=0.2, top_p=0.2)
    assert [loss.why for loss in losses] == ["m-1 does not take it", "m-1 does not take it while it reasons"]


def test_a_forced_tool_call_becomes_a_free_one() -> None:
    facts = Facts(forced_tools=False)
    for choice in (ToolChoice("required", at="/tool_choice"), ToolChoice("named", ("f",))):
        request, losses = fitted(facts, choice=choice)
        assert request.tool_choice == ToolChoice("auto", at=choice.at)
        assert losses == (
            Loss("/tool_choice", "a forced tool call", "m-1 decides itself whether it calls a tool", "option"),
        )
    assert fitted(facts, choice=ToolChoice("auto"))[1] == ()


def test_a_request_without_a_name_says_the_model() -> None:
    (misfit,) = misfits(Request(options=Options(top_k=3)), Facts(refuses=("top_k",)), "effort")
    assert misfit.why == "the model does not take it"


# --- reasoning --------------------------------------------------------------------------------------

ADAPTIVE, BUDGET = Facts(thinking=("adaptive",)), Facts(thinking=("budget", "off"))
BETWEEN_TOOLS = Facts(thinking=("adaptive", "between_tools"))
THREE, NO_EFFORTS = Facts(efforts=("low", "medium", "high")), Facts(efforts=())
LOUD = Facts(efforts=("medium", "high"))
CLAUDE = Facts(efforts=(), thinking=("budget", "off"))
AT = {"budget": "/b", "effort": "/e", "mode": "/m"}


def thought(facts: Facts, form: ReasoningForm, **reasoning: object) -> tuple[Reasoning | None, list[str]]:
    request, losses = fitted(facts, form, reasoning=Reasoning(**reasoning))  # type: ignore[arg-type]
    return request.options.reasoning, [f"{loss.pointer} {loss.what}: {loss.why} ({loss.severity})" for loss in losses]


@pytest.mark.parametrize(
    ("facts", "form", "asked", "fitted", "loss"),
    [
        # A budget becomes adaptive where only that is taken, and the other way round.
        (ADAPTIVE, "mode", {"mode": "on", "budget": 4000}, {"mode": "adaptive"},
         "/b a thinking budget of 4000: m-1 takes adaptive thinking only (option)"),
        (Facts(thinking=("off",)), "mode", {"budget": 4000}, {},
         "/b a thinking budget of 4000: m-1 takes no budget (option)"),
        (BUDGET, "mode", {"mode": "adaptive"}, {}, "/m thinking adaptive: m-1 thinks with a budget only (option)"),
        (BUDGET, "mode", {"mode": "on"}, {}, "/m thinking on: m-1 thinks with a budget only (option)"),
        (BUDGET, "mode", {"budget": -1}, {}, "/m thinking adaptive: m-1 thinks with a budget only (option)"),
        # Thinking that cannot be switched off.
        (ADAPTIVE, "mode", {"effort": "none"}, {}, "/m thinking switched off: m-1 takes no such setting (option)"),
        (Facts(thinking=("adaptive",), reasons_unasked=False), "mode", {"mode": "off"}, {},
         "/m thinking switched off: m-1 takes no such setting (identity)"),
        (BETWEEN_TOOLS, "mode", {"mode": "off", "effort": "low"}, {"mode": "between_tools", "effort": "low"},
         "/m thinking switched off: the least that m-1 takes is between_tools (option)"),
        (Facts(thinking=("budget",)), "level", {"mode": "off", "budget": 0}, {},
         "/m thinking switched off: m-1 always thinks (option)"),
        # An effort that a model does not have becomes the nearest; so does off, where efforts are all there is.
        (THREE, "effort", {"effort": "max"}, {"effort": "high"},
         "/e effort 'max': the nearest that m-1 takes is high (option)"),
        (THREE, "effort", {"effort": "wild"}, {}, "/e effort 'wild': m-1 does not know it (option)"),
        (THREE, "effort", {"mode": "off"}, {"effort": "low"},
         "/e effort 'none': the nearest that m-1 takes is low (option)"),
        (NO_EFFORTS, "mode", {"effort": "high"}, {}, "/e effort 'high': m-1 takes no effort (option)"),
        # An effort becomes a budget, and a budget an effort.
        (NO_EFFORTS, "level", {"effort": "medium"}, {"budget": 8192},
         "/e effort 'medium': m-1 takes a budget; the nearest is 8192 tokens (option)"),
        (NO_EFFORTS, "level", {"effort": "max"}, {"budget": 24_576},
         "/e effort 'max': m-1 takes a budget; the nearest is 24576 tokens (option)"),
        (NO_EFFORTS, "level", {"effort": "low", "budget": 7}, {"budget": 7},
         "/e effort 'low': m-1 takes no effort (option)"),
        (CLAUDE, "mode", {"effort": "medium"}, {"budget": 8192},
         "/e effort 'medium': m-1 takes a budget; the nearest is 8192 tokens (option)"),
        (Facts(efforts=(), thinking=("off",)), "mode", {"effort": "medium"}, {},
         "/e effort 'medium': m-1 takes no effort (option)"),
        (LOUD, "effort", {"budget": 100}, {"effort": "medium"},
         "/b reasoning budget of 100 tokens: the nearest effort that m-1 takes is medium (option)"),
        (NO_EFFORTS, "effort", {"budget": 100}, {}, "/b reasoning budget of 100 tokens: m-1 takes no effort (option)"),
    ],
)  # fmt: skip
def test_reasoning_that_does_not_fit_becomes_what_does(
    facts: Facts, form: ReasoningForm, asked: dict[str, object], fitted: dict[str, object], loss: str
) -> None:
    assert thought(facts, form, **asked, places=AT) == (Reasoning(**fitted, places=AT), [loss])


@pytest.mark.parametrize(
    ("facts", "form", "asked"),
    [
        (ADAPTIVE, "mode", {"mode": "adaptive", "budget": 100}),
        (ADAPTIVE, "mode", {"mode": "on"}),
        (ADAPTIVE, "mode", {"summary": "auto"}),
        (ADAPTIVE, "effort", {"mode": "on", "budget": 4000}),
        (ADAPTIVE, "level", {"mode": "on", "budget": 4000}),
        (BUDGET, "mode", {"mode": "on", "budget": 2000}),
        (BUDGET, "mode", {"mode": "off"}),
        (BUDGET, "mode", {"effort": "none"}),
        (BUDGET, "level", {"mode": "off"}),
        (THREE, "effort", {"effort": "low"}),
        (THREE, "mode", {"mode": "off"}),
        (THREE, "level", {"mode": "off"}),
        (LOUD, "effort", {"budget": 9000}),
    ],
)
def test_reasoning_that_fits_stays(facts: Facts, form: ReasoningForm, asked: dict[str, object]) -> None:
    assert thought(facts, form, **asked) == (Reasoning(**asked), [])


def test_a_loss_without_a_place_is_where_the_dialect_has_reasoning() -> None:
    assert thought(ADAPTIVE, "mode", budget=4000)[1][0].startswith("/thinking a thinking budget")
    assert thought(ADAPTIVE, "mode", mode="off")[1][0].startswith("/thinking thinking switched off")
    assert thought(THREE, "effort", effort="wild")[1][0].startswith("/reasoning effort")
    assert thought(LOUD, "effort", budget=100)[1][0].startswith("/reasoning reasoning budget")
    assert [effort_for(budget) for budget in (0, 2048, 8192)] == ["low", "medium", "high"]


@pytest.mark.parametrize(
    ("effort", "efforts", "nearest"),
    [
        ("max", ("low", "high"), "high"),
        ("xhigh", ("low", "medium", "high", "max"), "high"),
        ("minimal", ("none", "low"), "low"),
        ("none", ("minimal", "low"), "minimal"),
        ("low", ("medium", "wild"), "medium"),
        ("low", (), None),
        ("low", ("none",), None),
        ("wild", ("low",), None),
    ],
)
def test_the_nearest_effort(effort, efforts, nearest) -> None:
    assert nearest_effort(effort, efforts) == nearest


def test_reasoning_is_dropped_for_a_model_without_reasoning() -> None:
    facts = Facts(reasoning=False)
    request, losses = fitted(facts, reasoning=Reasoning(mode="on", budget=4000, at="/thinking"))
    assert request.options.reasoning is None
    assert losses == (Loss("/thinking", "reasoning", "m-1 does not reason", "option"),)
    assert thought(facts, "mode", mode="off") == (None, ["/reasoning reasoning: m-1 does not reason (identity)"])


# --- parts ------------------------------------------------------------------------------------------

CITED = Text("a", (Citation("u"),), at="/messages/0/content/0")
FILE = Document(Link("f"), at="/messages/1/content/0")
REFUSING = Facts(refuses_parts=("assistant_documents", "user_citations"))


def spoken(facts: Facts, *messages: Message) -> tuple[list[tuple[Part, ...]], list[tuple[str, str]]]:
    report = Report()
    request = fit_to_model(Request("m-1", messages), facts, "mode", report)
    return [each.parts for each in request.messages], [(loss.pointer, loss.severity) for loss in report.losses]


def test_parts_that_a_version_refuses_are_dropped_and_reported() -> None:
    picture = Image(Link("p"), at="/messages/1/content/1")
    parts, losses = spoken(REFUSING, Message("user", (CITED,)), Message("assistant", (FILE, picture)))
    assert parts == [(Text("a", at=CITED.at),), (picture,)]
    assert losses == [("/messages/0/content/0", "option"), ("/messages/1/content/0", "content")]


@pytest.mark.parametrize("facts", [REFUSING, Facts(), Facts(refuses_parts=())])
def test_parts_that_stand_where_they_are_taken_stay(facts: Facts) -> None:
    messages = [Message("user", (FILE, Text("b"))), Message("assistant", (CITED,))]
    assert spoken(facts, *messages) == ([each.parts for each in messages], [])


@pytest.mark.parametrize(
    "facts", [Facts(refuses_parts=("user_citations",)), Facts(refuses_parts=("assistant_documents",))]
)
def test_each_rule_is_for_one_of_them(facts: Facts) -> None:
    _, losses = spoken(facts, Message("user", (CITED,)), Message("assistant", (FILE,)))
    assert len(losses) == 1
