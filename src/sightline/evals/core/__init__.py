"""Suites of cases with structured messages, the requests made of them for a target, the graders of answers, and the
statistics of results. It imports the values, the dialects and the budget. It is handed file contents and answers, and
never opens a file, runs a command or sends a request: the service that drives it does."""
