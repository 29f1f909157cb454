import argparse

from sightline.cli.options import add_shared


def test_every_command_takes_a_configuration_and_a_data_folder() -> None:
    parser = argparse.ArgumentParser()
    add_shared(parser)
    told = parser.parse_args(["--config", "a.toml", "--data", "d", "--log-level", "debug"])
    assert (told.config, told.data, told.log_level) == ("a.toml", "d", "debug")
    silent = parser.parse_args([])
    assert (silent.config, silent.data, silent.log_level) == (None, None, "info")
