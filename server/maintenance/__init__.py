"""What an operator does to a database, beside reading and writing results.

check.py      is it whole? recount.py counts anew what the store keeps for pages
prune.py      delete what is older than it has to be kept
sizes.py      rows, bytes, growth
backup.py     a copy, while others write
"""
