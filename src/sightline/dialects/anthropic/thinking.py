"""How much the model thinks, both ways: `thinking` and the effort in `output_config`."""

from collections.abc import Mapping

from sightline.dialects.anthropic.names import NAME
from sightline.dialects.fields import opt_int, opt_object, opt_str
from sightline.dialects.option_table import set_path
from sightline.model.json import JsonObject
from sightline.model.options import Reasoning
from sightline.model.report import Report

LEAST_BUDGET = 1024

BETWEEN_TOOLS = "between_tools"
"""The least thinking of models that cannot do without: only to them is it ever written from another dialect."""

EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})

_MODES: Mapping[str, str] = {"enabled": "on", "disabled": "off", "adaptive": "adaptive"}
_TYPES: Mapping[str, str] = {mode: word for word, mode in _MODES.items()}
_SUMMARIES: Mapping[str, str] = {"summarized": "auto", "omitted": "none"}
_DISPLAYS: Mapping[str, str] = {
    "auto": "summarized",
    "concise": "summarized",
    "detailed": "summarized",
    "none": "omitted",
}


def read_reasoning(body: JsonObject) -> Reasoning | None:
    """What the body says about thinking; None if it says nothing that we know."""
    thinking = opt_object(body, "thinking", "") or {}
    config = opt_object(body, "output_config", "") or {}
    fields = {
        "mode": (_MODES.get(opt_str(thinking, "type", "/thinking") or ""), "/thinking/type"),
        "summary": (_SUMMARIES.get(opt_str(thinking, "display", "/thinking") or ""), "/thinking/display"),
        "effort": (opt_str(config, "effort", "/output_config"), "/output_config/effort"),
    }
    budget = opt_int(thinking, "budget_tokens", "/thinking")
    places = {name: place for name, (value, place) in fields.items() if value is not None}
    if budget is not None:
        places["budget"] = "/thinking/budget_tokens"
    if not places:
        return None
    return Reasoning(
        mode=fields["mode"][0],
        effort=fields["effort"][0],
        budget=budget,
        summary=fields["summary"][0],
        places=places,
        at="/thinking" if thinking else "/output_config",
    )


def write_reasoning(reasoning: Reasoning, body: JsonObject, report: Report, *, same: bool) -> None:
    """Put it into the body. Nothing is switched on that was not asked for."""
    if same:
        thinking = _own_thinking(reasoning)
        if reasoning.effort is not None:
            set_path(body, ("output_config", "effort"), reasoning.effort)
    else:
        thinking = _Foreign(reasoning, body, report).write()
    if thinking:
        body["thinking"] = thinking


def _own_thinking(reasoning: Reasoning) -> JsonObject:
    thinking: JsonObject = {}
    if reasoning.mode is not None:
        thinking["type"] = _TYPES.get(reasoning.mode, reasoning.mode)
    if reasoning.budget is not None:
        thinking["budget_tokens"] = reasoning.budget
    if reasoning.summary is not None:
        thinking["display"] = _DISPLAYS.get(reasoning.summary, reasoning.summary)
    return thinking


class _Foreign:
    """Another dialect's reasoning settings in this one's terms."""

    def __init__(self, reasoning: Reasoning, body: JsonObject, report: Report) -> None:
        self._reasoning = reasoning
        self._body = body
        self._report = report

    def write(self) -> JsonObject:
        """The thinking object; the effort goes into the body."""
        thinking = self._thinking()
        self._effort(thinking)
        if self._reasoning.summary is not None:
            self._display(self._reasoning.summary, thinking)
        return thinking

    def _thinking(self) -> JsonObject:
        mode, budget = self._reasoning.mode, self._reasoning.budget
        if mode == "off" or (mode is None and budget == 0):
            return {"type": "disabled"}
        if mode == BETWEEN_TOOLS:
            return {"type": BETWEEN_TOOLS}
        if mode == "adaptive" or (budget is not None and budget < 0):
            if budget is not None and budget >= 0:
                self._lose("budget", f"a budget of {budget}", "adaptive thinking has none")
            return {"type": "adaptive"}
        if budget is not None:
            return self._fit_budget(budget)
        if mode == "on":
            self._lose("mode", "thinking switched on", "without a budget the nearest is adaptive thinking")
            return {"type": "adaptive"}
        if mode is not None:
            self._lose("mode", f"thinking mode {mode!r}", f"{NAME} does not know it")
        return {}

    def _fit_budget(self, budget: int) -> JsonObject:
        choice = self._body.get("tool_choice")
        if isinstance(choice, dict) and choice["type"] in ("any", "tool"):
            self._lose("budget", f"a budget of {budget}", "a forced tool call excludes it")
            return {}
        limit = self._body.get("max_tokens")
        fitting = max(budget, LEAST_BUDGET)
        if isinstance(limit, int):
            fitting = min(fitting, limit - 1)
        if fitting < LEAST_BUDGET:
            self._lose("budget", f"a budget of {budget}", f"{NAME} takes {LEAST_BUDGET} at least, below max_tokens")
            return {}
        if fitting != budget:
            self._lose("budget", f"a budget of {budget}", f"the nearest that {NAME} takes is {fitting}")
        return {"type": "enabled", "budget_tokens": fitting}

    def _effort(self, thinking: JsonObject) -> None:
        effort = self._reasoning.effort
        if effort == "none":
            if thinking.setdefault("type", "disabled") != "disabled":
                self._lose("effort", "effort 'none'", "thinking is asked for beside it")
            return
        if effort == "minimal":
            self._lose("effort", "effort 'minimal'", "the nearest is low")
            effort = "low"
        if effort in EFFORTS:
            set_path(self._body, ("output_config", "effort"), effort)
        elif effort is not None:
            self._lose("effort", f"effort {effort!r}", f"{NAME} does not know it")

    def _display(self, summary: str, thinking: JsonObject) -> None:
        if thinking.get("type") not in ("enabled", "adaptive") or summary not in _DISPLAYS:
            self._lose("summary", f"reasoning summary {summary!r}", f"{NAME} says it beside its thinking setting only")
            return
        thinking["display"] = _DISPLAYS[summary]
        if _SUMMARIES[_DISPLAYS[summary]] != summary:
            self._lose("summary", f"reasoning summary {summary!r}", f"{NAME} knows one kind of summary")

    def _lose(self, name: str, what: str, why: str) -> None:
        self._report.lose(self._reasoning.places.get(name, self._reasoning.at), what, why, "option")
