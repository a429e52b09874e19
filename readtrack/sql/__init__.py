"""Everything that reads and writes SQL. Differences between databases are handled here and nowhere else."""
