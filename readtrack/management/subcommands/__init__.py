"""One module for each subcommand, with `help`, `description`, `add_arguments`, `run` and perhaps `after_failure`."""
