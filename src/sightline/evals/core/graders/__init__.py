"""Graders: what each type checks, how it is configured, and how the scores of all graders become the score of a case.

A grader is a generator: it asks for what it needs from outside (a judge's answer, a command's output, a file) and is
sent the outcome. It may import the values of evals and the layers below them. It never sends, runs or opens anything.
If it cannot decide, it says so: that is neither a zero nor a pass.
"""
