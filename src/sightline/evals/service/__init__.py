"""Runs suites: delivers each case to each target through the same engine as every other request, grades the answers and
logs the results. The rules of grading are in `evals.core`; this package drives them and does the input and output."""
