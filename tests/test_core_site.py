"""A small site with the core alone: what it imports, its tables and its keys in Redis."""

import json
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from readtrack import shipped
from tests.support.forks import Forks

SITE = Path(__file__).parent / "support" / "weighed_site"

LIFE = """
import json
import django

django.setup()
from django.conf import settings
from django.db import connection
from redis import Redis
from weighed_site import probe

modules = {"start": [*probe.modules()]}
probe.prepare()
probe.full_flush()
for act in (probe.view, probe.publish, probe.read, probe.full_flush):
    act()
    modules[act.__name__] = [*probe.modules()]

from readtrack.store import keys

redis = Redis.from_url(settings.CACHES["readtrack"]["LOCATION"], decode_responses=True)
rows = [keys.parse(name)[0] for name in redis.keys("*")]
print(json.dumps({
    "modules": modules,
    "tables": [name for name in connection.introspection.table_names() if "readtrack" in name],
    "keys": sorted({row.pattern if row else "unknown" for row in rows}),
}))
"""

TABLES = [
    "readtrack_archive",
    "readtrack_flushrun",
    "readtrack_knownepoch",
    "readtrack_pendingpublication",
    "readtrack_readernumber",
    "readtrack_readstate",
    "readtrack_rename",
    "readtrack_reset",
    "readtrack_subjectcount",
]

KEYS = [
    "category:{subject}:published",
    "category:{subject}:read",
    "flush:full",
    "flush:last",
    "flush:layout",
    "rate:{visitor}",
    "reads:began",
    "trending:list",
    "trending:taken:{minute}",
    "viewed:{visitor}:{subject}",
    "views:hll:{subject}",
    "views:total:{subject}",
    "views:unsettled",
    "visitors:minute:{minute}:{model}",
]


@pytest.fixture
def found(bare_forks: Forks, redis_url: str, tmp_path: Path, redis: Redis) -> Any:
    """Returns what a life of the site leaves behind."""
    redis.flushdb()
    (tmp_path / SITE.name).symlink_to(SITE)
    done = bare_forks.run(
        LIFE,
        folder=tmp_path,
        DJANGO_SETTINGS_MODULE="weighed_site.settings",
        WEIGHT_REDIS_URL=redis_url,
        WEIGHT_DATABASE=str(tmp_path / "site.sqlite3"),
    )
    assert done.code == 0, done.output
    return json.loads(done.output)


def test_a_site_with_the_core_alone_has_nothing_of_a_part(found: Any) -> None:
    for act, modules in found["modules"].items():
        of_parts = [
            name
            for name in modules
            if any(name == part or name.startswith(f"{part}.") for part in shipped.PARTS)
        ]
        assert of_parts == [], act
    assert (found["tables"], found["keys"]) == (TABLES, KEYS)
