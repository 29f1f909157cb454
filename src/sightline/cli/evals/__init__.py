"""`sightline eval`: run, validate, show and compare suites, and make cases from the record. It may import everything
below the command line, and shared parts of the other commands; sending, grading and statistics are in `evals`."""
