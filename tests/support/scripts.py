"""Scripts that a server knows before a test counts its round trips or commands."""

from importlib.resources import files

from redis import Redis

from readtrack import parts
from readtrack.store import scripts


def load_scripts(client: Redis) -> None:
    """Loads every script of the core and of the installed parts into a server."""
    folder = files("readtrack.store").joinpath("lua")
    names = [path.name.removesuffix(".lua") for path in folder.iterdir()]
    for part in parts.installed():
        names += [f"{part.name}/{script}" for script in part.scripts]
    for name in names:
        client.script_load(scripts._source(name))
