"""The dashboard in the admin: its numbers and its charts."""
