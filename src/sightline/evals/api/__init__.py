"""The page's calls about suites: runs in a line each, one as a matrix of cases and targets, a case with what was sent,
answered and graded, two runs compared, a suite over time; and what is done there: run again, stop, make a case of an
exchange, write a change back. It shows what engine and evals say, and neither sends nor grades by itself."""
