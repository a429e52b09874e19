"""Tools that the tests share: servers, factories, relays, work that stops at each round trip."""
