"""Tools: functions that a model may call. Their docstrings and annotations are what the model is told.

[plugins]
use = ["unit_tools.py"]

[tools.units]
plugin = "units"
allow = ["*"]
"""

from sightline.plugins import Plugin


def to_celsius(fahrenheit: float) -> float:
    """Convert a temperature.

    Args:
        fahrenheit: the temperature in degrees Fahrenheit
    """
    return round((fahrenheit - 32) * 5 / 9, 2)


def to_kilometres(miles: float) -> float:
    """Convert a distance.

    Args:
        miles: the distance in miles
    """
    return round(miles * 1.609344, 3)


PLUGIN = Plugin(name="units", tools=(to_celsius, to_kilometres))
