"""Suites of cases with structured messages, the requests made of them for a target, the graders of answers, and the
statistics of results. It may import `dialects` and the packages below them. It is handed file contents and answers, and
never opens a file, runs a command or sends a request: the service that drives it does."""
