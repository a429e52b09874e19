"""One request: its visitor, its reader, and the reasons why it may not count."""
