"""Speed, measured side by side: `make bench` prints what Sightline's codecs and start cost as ratios to the least that
any program would have to do with the same bytes. Nothing here asserts; ratios of one run can be compared, times of two
machines cannot.
"""
