"""Keeps records and answers questions about them. Imports no torch.

settings, db, migrations    which database, how it is opened, its schema's history
tables, rows, summaries     the schema; records to rows and back; what is counted at each insert
store                       the only writer of rows
queries, answers, schemas   the only reader; its rows as answers; what the answers say
app, guard                  the API; who may ask, and what a browser may do with the answer
"""
