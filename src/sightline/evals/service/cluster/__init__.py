"""Runs cases on other machines. A host is a remote process that runs cases; home is the process that drives the run. A
host stores nothing itself: the record, rate limits, cached answers, spending and logs are kept at home. Independent of
any particular cluster; a cluster is passed in as a `HostPool`."""
