"""The subcommands: `actions` has a function for each, `arguments.json` and `help/` describe them."""
