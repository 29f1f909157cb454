"""Sightline beside other gateways: `make bench ARGS=peers` puts each of them in front of the same upstream, on a core
of its own, and counts what a request costs. It starts programs, installs peers into `.bench/` and needs Linux; what is
missing is said in the report. Nothing of it is imported by Sightline or by its tests.
"""
