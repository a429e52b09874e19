"""The dashboard in the admin: pages, charts and files of what `readtrack.numbers` knows."""
