"""One module for each subcommand, with `description`, `arguments`, `run` and perhaps `after_failure`."""
