"""The page's HTTP calls about evals: list runs, show a run as a matrix of cases and targets, show one case, compare two
runs, show a suite over time; rerun, stop, make a case from an exchange, write a change back. It only shows what the
service and core compute."""
