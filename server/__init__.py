"""Keeps records and answers questions about them. Imports no torch.

settings, db, migrations    which database, how it is opened, its schema's history
tables, rows, summaries     the schema; records to rows and back; what is counted at each insert
store                       the only writer of rows
queries, reading            the only reader: a door per question; how each is put, a noun a module
answers, schemas*           its rows as answers; what the answers say
app, routes                 the app put together; what may be asked, a module per resource
guard, auth, limits         who may ask, and what a browser may do with the answer; tokens; how often
answering, tabular          tags and compression; rows as CSV and Parquet
bodies, arrivals            what is sent, within limits and line by line; what becomes of it
live, remarks, metrics      a run as it goes on; what people say; counters
description                 of the API, beyond what routes say
"""
