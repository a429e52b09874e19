"""One module for each subcommand, with `arguments`, `run` and perhaps `after_failure`; `help/` describes them."""
