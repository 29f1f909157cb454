"""Cases on other machines: hosts that run them, the line between each host and the one process that drives the run, and
the pool that hands cases out. It knows of no particular kind of cluster; whoever has one gives it as a `Fleet`. A host
keeps nothing: the record, the limits, the answers of before, the money and the logs are at home."""
