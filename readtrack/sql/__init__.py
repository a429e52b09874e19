"""Reading and writing SQL. The differences between databases are handled here."""
