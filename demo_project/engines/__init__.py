"""Real servers from wheels: a Valkey and a PostgreSQL of one's own, for the demo and for the tests."""
