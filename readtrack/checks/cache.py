"""Checks of the entry in `CACHES` that leads to Redis."""

from django.conf import settings
from django.core import checks

from readtrack.conf import conf
from readtrack.store import connection


def check_cache() -> list[checks.CheckMessage]:
    """Checks that the cache is in Redis, with servers that readtrack can use."""
    problem = connection.misconfiguration()
    if not problem:
        return []
    return [
        checks.Error(
            f"The cache '{conf.CACHE}' cannot be used: {problem.rstrip('.')}.",
            hint=(
                "Give readtrack an alias of its own: CACHES['readtrack'] ="
                " {'BACKEND': 'django_redis.cache.RedisCache',"
                " 'LOCATION': 'redis://127.0.0.1:6379/1'} and READTRACK = {'CACHE': 'readtrack'}."
                " If one of your settings files has that line, then one that is read later, such as"
                " local.py, has replaced the whole dict by CACHES = …, and needs the line, too."
                " LOCATION is a URL such as 'redis://127.0.0.1:6379/0', 'rediss://…' with TLS, or"
                " 'unix:///run/redis.sock'. One server, replicas beside it and Sentinel can be"
                " used, and a Redis Cluster with 'readtrack.cluster'. Caches of"
                " Django itself, django-valkey and django-cachex can be used, too; readtrack makes"
                " connections of its own to their servers."
            ),
            id="readtrack.E012",
        )
    ]


def check_key_prefix() -> list[checks.CheckMessage]:
    """Checks that readtrack's keys have a prefix if those of the cache have one."""
    key_prefix = settings.CACHES.get(conf.CACHE, {}).get("KEY_PREFIX")
    if not key_prefix or conf.PREFIX:
        return []
    return [
        checks.Warning(
            f"The cache '{conf.CACHE}' has the KEY_PREFIX {key_prefix!r},"
            " which readtrack's keys do not get.",
            hint=(
                f"Set READTRACK['PREFIX'] = '{key_prefix}:'."
                " Otherwise two sites on one Redis count into the same keys."
            ),
            id="readtrack.W013",
        )
    ]
