"""Keeps records and answers questions about them. Imports no torch.

settings, db, migrations    which database, how it is opened, its schema's history
tables, rows, summaries     the schema; records to rows and back; what is counted at each insert
store                       the only writer of rows
queries, reading            the only reader: a door per question; how each is put, a noun a module
answers, schemas*           its rows as answers; what the answers say
app, routes                 the app put together; what may be asked, a module per resource
guard, answering, tabular   who may ask; tags and compression; rows as CSV and Parquet
"""
