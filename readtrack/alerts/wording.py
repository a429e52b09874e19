"""Alerts in words, for mails, and as data, for the webhook."""

from typing import Any

from django.utils.translation import gettext

from readtrack import buckets
from readtrack.alerts.models import Alert
from readtrack.lines import one_line
from readtrack.numbers.changes import multiple
from readtrack.numerals import exact

# What chat services take for a mention or a link, such as "<!channel>" and "@all", and what looks
# like it. A title is not to call a whole channel.
PLAIN_IN_CHAT = str.maketrans({"<": "\u2039", ">": "\u203a", "@": "\uff20"})
LONGEST_SUBJECT = 200  # characters of a mail's subject


def subject_of(alert: Alert) -> str:
    """Returns the alert as one line."""
    values = {"title": alert.title, "times": _times(alert), "share": _share(alert)}
    texts = {
        Alert.Kind.STORY: gettext("%(times)s × the usual views: %(title)s"),
        Alert.Kind.SITE: gettext("The site has %(share)s%% of its usual views"),
        Alert.Kind.FLUSH: gettext("Flushes are late"),
        Alert.Kind.REDIS: gettext("Redis does not answer"),
    }
    return one_line(texts[Alert.Kind(alert.kind)] % values)[:LONGEST_SUBJECT]


def text_of(alert: Alert) -> str:
    """Returns the alert in some lines, the address of the page to look at in the last one."""
    values = {
        "views": exact(alert.views or 0),
        "usual": alert.usual_text,
        "minutes": exact(alert.minutes or 0),
    }
    texts = {
        Alert.Kind.STORY: gettext(
            "%(views)s views in the last %(minutes)s minutes, where %(usual)s are usual."
        ),
        Alert.Kind.SITE: gettext(
            "%(views)s views in the last %(minutes)s minutes, where %(usual)s are usual at this hour"
            " of the week. Does the site answer? Are its pages as they were?"
        ),
        Alert.Kind.FLUSH: gettext(
            "The views of the last minutes are in Redis only. Does the schedule run?"
        ),
        Alert.Kind.REDIS: gettext(
            "Pages are shown without it, and nothing is counted until it answers again."
        ),
    }
    lines = [subject_of(alert), "", texts[Alert.Kind(alert.kind)] % values]
    if alert.details:
        lines.append(alert.details)
    if alert.kind in {Alert.Kind.FLUSH, Alert.Kind.REDIS}:
        lines.append(gettext("What to do: %(command)s") % {"command": "manage.py readtrack doctor"})
    if alert.url:
        lines += ["", alert.url]
    return "\n".join(lines)


def chat_text_of(alert: Alert) -> str:
    """Returns the text of the alert for a chat, where nobody is mentioned by it."""
    words = text_of(alert).removesuffix(alert.url)
    return words.translate(PLAIN_IN_CHAT) + alert.url


def payload_of(alert: Alert) -> dict[str, Any]:
    """Returns the alert as data, in the form that Standard Webhooks recommends."""
    data = {
        "kind": str(alert.kind),
        "subject": alert.subject,
        "title": alert.title,
        "views": alert.views,
        "usual": None if alert.usual is None else round(alert.usual, 2),
        "minutes": alert.minutes,
        "details": alert.details,
        "url": alert.url,
        "text": subject_of(alert),
    }
    started = buckets.now(alert.started)
    return {"type": f"readtrack.alert.{alert.kind}", "timestamp": started.isoformat(), "data": data}


def _times(alert: Alert) -> str:
    """Returns how many times its usual views a story has; all its views if none are usual."""
    return multiple((alert.views or 0) / max(1.0, alert.usual or 0))


def _share(alert: Alert) -> int:
    """Returns which percentage of its usual views the site has."""
    return round(100 * (alert.views or 0) / max(1.0, alert.usual or 0))
