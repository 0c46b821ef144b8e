"""Keeps records and answers questions about them. Imports no torch.

tables, db, migrations    the schema        store      the only writer of rows
queries, schemas          the only reader   app        the API
"""
