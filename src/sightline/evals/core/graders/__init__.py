"""Graders: what each type looks at, how it is configured, and what a case is worth when all have spoken.

A grader is a generator: it asks for what it cannot have by itself (a judge's answer, a command's output, a file) and is
sent what came of it. It may import the values of evals and what is below them. It never sends, runs or opens anything,
and where it cannot tell it says so: that is neither a zero nor a pass.
"""
