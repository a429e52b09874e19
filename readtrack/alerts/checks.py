"""Checks of the alerts, which the setting ALERTS turns on."""

from django.core import checks

from readtrack.alerts.options import problems


def check_setting() -> list[checks.CheckMessage]:
    """Checks that ALERTS can be used."""
    return [
        checks.Error(
            f"READTRACK['ALERTS'] cannot be used: {problem}.",
            hint=(
                "Give it 'site', such as 'https://example.com', or the path of a function that"
                " returns it; and if you want, 'mail': a list of"
                " addresses; 'webhook': {'url': 'https://…', 'secret': 'whsec_…'}, or for a chat"
                " {'url': 'https://…', 'form': 'text'}; and the numbers 'story', 'least' and"
                " 'site_fall'. Until then there are no alerts."
            ),
            id="readtrack.E075",
        )
        for problem in problems()
    ]
