"""Evals: suites of cases with structured messages, what they become for a target, how answers are graded, and what may
be said of the numbers. It imports the values, the dialects and the budget, gets file contents and answers handed in,
and never opens a file, runs a command or sends a request: the service that drives it does."""
