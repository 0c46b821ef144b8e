"""The API's addresses, a module for each resource: what may be asked, and which query answers it.

asked       who answers, and the filters that several addresses share
problems    why there is no answer, and with which status
forms       a list page by page; as JSON, CSV or Parquet
"""
