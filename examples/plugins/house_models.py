"""A model catalogue: the models of your house, with their limits and prices, for everyone who names this file.

[plugins]
use = ["house_models.py"]
"""

from sightline.plugins import Plugin

CATALOGUE = """
[providers.house]
title = "The house's own models"
base_url = "http://127.0.0.1:9000/v1"
default_model = "house-large"

[models."house/house-large"]
context_window = 65536
"""

PLUGIN = Plugin(name="house-models", catalogue=CATALOGUE)
