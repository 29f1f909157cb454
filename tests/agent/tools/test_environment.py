from sightline.agent.tools.commands import minimal, without

OURS = {"PATH": "/bin", "LC_ALL": "C", "OPENAI_API_KEY": "sk-1", "GITHUB_TOKEN": "gh", "LD_PRELOAD": "x.so"}


def test_a_command_of_the_model_gets_what_any_command_needs() -> None:
    assert minimal(OURS) == {"PATH": "/bin", "LC_ALL": "C"}


def test_a_program_of_a_person_gets_all_but_the_providers_keys() -> None:
    assert without(OURS, {"OPENAI_API_KEY", "NOT_SET"}).keys() == OURS.keys() - {"OPENAI_API_KEY"}
