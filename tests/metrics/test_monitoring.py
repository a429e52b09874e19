"""The dashboard for Grafana and the alerts for Prometheus ask for metrics that there are."""

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from readtrack.hits.hit import REASONS
from tests.doctor.conftest import run
from tests.metrics.test_exposition import BEARER, TOKEN, URL, exposed

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "docs" / "monitoring" / "grafana.json"
ALERTS = ROOT / "docs" / "monitoring" / "alerts.yml"
# Labels that Prometheus adds.
OF_PROMETHEUS = {"job", "instance"}


@pytest.fixture
def labels(db: None, settings: Settings) -> dict[str, set[str]]:
    """Returns the labels of each sample that the endpoint gives, by its name."""
    settings.READTRACK = {"METRICS": {"token": TOKEN}, "TIMEOUT": 10.0}
    run(ago=60)
    found: dict[str, set[str]] = {}
    for metric in exposed():
        for sample in metric.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.fixture
def dashboard() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return content


def expressions(dashboard: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\breadtrack_[a-z_]+", text))


def labels_in(expression: str) -> set[str]:
    """Returns the labels that an expression selects or groups by."""
    groups = re.findall(r"\b(?:by|without|on|ignoring) \(([^)]*)\)", expression)
    selectors = re.findall(r"\{([^}]*)\}", expression)
    selected = re.findall(r"(\w+)(?:=~?|!~|!=)", " ".join(selectors))
    return {*re.findall(r"\w+", " ".join(groups)), *selected}


@pytest.mark.one_server("a cluster has no memory of its own")
def test_every_metric_is_in_the_dashboard_or_in_an_alert(
    dashboard: dict[str, Any], labels: dict[str, set[str]]
) -> None:
    in_dashboard = set().union(*map(names_in, expressions(dashboard)))
    in_alerts = names_in(ALERTS.read_text(encoding="utf-8"))
    assert in_dashboard - labels.keys() == set()
    assert in_alerts - labels.keys() == set()
    assert labels.keys() - in_dashboard - in_alerts == set()


@pytest.mark.one_server("a cluster has no memory of its own")
def test_an_expression_has_labels_of_its_metrics(
    dashboard: dict[str, Any], labels: dict[str, set[str]]
) -> None:
    alerts = re.findall(
        r"expr: (.+?)\n +(?:for|labels):", ALERTS.read_text(encoding="utf-8"), re.DOTALL
    )
    assert len(alerts) == ALERTS.read_text(encoding="utf-8").count("- alert:")
    for expression in [*expressions(dashboard), *alerts]:
        known = OF_PROMETHEUS.union(*(labels[name] for name in names_in(expression)))
        assert labels_in(expression) <= known, expression
    reasons = re.findall(r'reason=~"([^"]+)"', " ".join(alerts))
    assert reasons
    assert {reason for text in reasons for reason in text.split("|")} <= set(REASONS)


def test_each_panel_has_a_place_of_its_own_and_an_expression(dashboard: dict[str, Any]) -> None:
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places: Counter[tuple[int, int]] = Counter()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            places.update((x, y) for y in range(place["y"], place["y"] + place["h"]))
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0
        for target in panel["targets"]:
            assert names_in(target["expr"])
            legend = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert legend <= labels_in(target["expr"])
    assert max(places.values()) == 1


def test_the_dashboard_uses_the_variables_that_it_has(dashboard: dict[str, Any]) -> None:
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard))) - {"__rate_interval"}
    assert used == variables


def test_brackets_are_closed(dashboard: dict[str, Any]) -> None:
    for expression in expressions(dashboard):
        for opened, closed in ("()", "[]", "{}"):
            assert expression.count(opened) == expression.count(closed), expression


promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")


@promtool
def test_prometheus_takes_the_rules_and_they_fire_when_they_should() -> None:
    command = ["promtool", "test", "rules", "alerts_test.yml"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@promtool
def test_prometheus_takes_the_expressions_of_the_dashboard(
    dashboard: dict[str, Any], tmp_path: Path
) -> None:
    # JSON is YAML as well.
    rules = [
        {"record": f"expression:{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, expression in enumerate(expressions(dashboard))
    ]
    file = tmp_path / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"{len(rules)} rules found" in done.stdout


@promtool
@pytest.mark.django_db
def test_prometheus_finds_no_fault_with_the_names(settings: Settings) -> None:
    settings.READTRACK = {"METRICS": {"token": TOKEN}, "TIMEOUT": 10.0}
    run(ago=60)
    text = Client().get(URL, headers=BEARER).text
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
