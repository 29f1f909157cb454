"""A field for filters: the team that a session belongs to, where sessions are called `team.task`.

[plugins]
use = ["team_field.py"]

sightline traffic 'team:billing & cost>0.10'
"""

from sightline.plugins import ExchangeField, FilterSubject, Plugin


def read_team(exchange: FilterSubject) -> str | None:
    """What is before the dot; None for a session without one."""
    session = exchange.value("session")
    team, dot, _ = session.partition(".") if isinstance(session, str) else ("", "", "")
    return team if dot else None


TEAM = ExchangeField(kind="text", meaning="the team that the session belongs to", read=read_team)

PLUGIN = Plugin(name="team", fields={"team": TEAM})
