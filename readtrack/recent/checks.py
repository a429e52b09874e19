"""The check of the setting RECENT."""

from django.core import checks

from readtrack.recent.options import recent_problems


def check_setting() -> list[checks.CheckMessage]:
    """Checks that RECENT can be used."""
    return [
        checks.Error(
            f"READTRACK['RECENT'] cannot be used: {problem}.",
            hint=(
                "Give it 'models': a list of models with counts, such as ['blog.Post'], and if you"
                " like 'kept': 20 objects of a reader; 'days': 30; 'visitors': True."
            ),
            id="readtrack.E098",
        )
        for problem in recent_problems()
    ]
