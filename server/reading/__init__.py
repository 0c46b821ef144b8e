"""What `server.queries` is made of: one noun each, statements and the rows that they give.

errors, filters, cursor    what cannot be answered; what is asked for; where a list goes on
runs, results, records     a run and its place in time; its planned cases; one record, whole or in part
series, trends, thin       columns over time, of cases and of summaries; how many points are enough
facets                     which filters have data
comparison                 two runs, held against each other by `harness.compare`

All take a connection within a read transaction and return plain rows or answers; none aggregates results.
"""
