"""System checks: what can be set up wrongly, each with what to do. None of them touches a network."""
