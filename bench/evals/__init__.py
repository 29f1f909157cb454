"""Sightline's evals beside other tools for them: `make bench ARGS=evals` gives each the same cases and upstream, on a
core of its own, and counts what a case costs. It installs the tools into `.bench/` and needs Linux; what is missing is
said in the report. Nothing of it is imported by Sightline or by its tests.
"""
