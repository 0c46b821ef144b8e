"""The API's addresses, a module for each resource: what may be asked, and which query answers it.

asked       who answers, and the filters that several addresses share
access      who may write: a token with its scope; the store and what else a route may ask for
problems    why there is no answer, and with which status
forms       a list page by page; as JSON, CSV or Parquet
"""
