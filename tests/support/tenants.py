"""For `PREFIX`: the tenant of a site that has a single one."""


def the_tenant() -> str:
    return "red"
