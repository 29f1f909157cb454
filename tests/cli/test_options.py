import argparse

import pytest

from sightline.cli.options import add_shared, amount, count, number


def test_every_command_takes_a_configuration_and_a_data_folder() -> None:
    parser = argparse.ArgumentParser()
    add_shared(parser)
    told = parser.parse_args(["--config", "a.toml", "--data", "d", "--log-level", "debug"])
    assert (told.config, told.data, told.log_level) == ("a.toml", "d", "debug")
    silent = parser.parse_args([])
    assert (silent.config, silent.data, silent.log_level) == (None, None, "info")


def test_numbers_that_options_take() -> None:
    assert (count("3"), number("-0.5"), amount("0.5")) == (3, -0.5, 0.5)
    for read, text in ((count, "0"), (count, "-1"), (count, "٣"), (number, "nan"), (number, "x"), (amount, "0")):
        with pytest.raises(argparse.ArgumentTypeError):
            read(text)
