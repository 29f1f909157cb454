"""Running evals: the cases of a suite are delivered to targets through the same engine as everything else, graded, and
written down as they come. It imports what the engine may, drives the generators of `evals`, and never decides by itself
what an answer is worth."""
