"""The texts of the subcommands: their arguments, and their help."""
