"""The tables of what is stored by time."""

from datetime import date

from django.db import models
from django.utils.translation import gettext_lazy as _

from readtrack import parts
from readtrack.hits.stages import STAGES
from readtrack.models import SUBJECT_LENGTH, SubjectRow
from readtrack.models.fields import ExactCharField
from readtrack.models.rows import OwnRow

parts.require("readtrack.numbers")

KIND_LENGTH = 40  # characters of the kind of a hash, such as `views:country`


class Breakdown(SubjectRow):
    """One field of a subject's hashes: the count of a stage of the funnel, of a value of a
    dimension, or of the reading.
    """

    pk = models.CompositePrimaryKey("subject", "kind", "field")
    kind = ExactCharField(max_length=KIND_LENGTH)
    field = ExactCharField(max_length=100)
    count = models.PositiveBigIntegerField()


class History(SubjectRow):
    """The absolute counts of a subject at the end of an hour in which they changed. The views of a
    range of hours are the difference of two rows.

    `subject` is that of an object, or the label of a model (`blog.post`). If the name of a stage is
    before it (`reads:blog.post:42`), `views` are those that reached this stage. `visitors` are
    those who ever came. Hour 0 has what a subject had before its history began.
    """

    prefixes = tuple(STAGES)

    pk = models.CompositePrimaryKey("subject", "hour")
    # The number of hours since 1970, UTC. It takes half the space of a time, and is the same in all
    # databases.
    hour = models.PositiveIntegerField()
    views = models.PositiveBigIntegerField()
    visitors = models.PositiveBigIntegerField()


class DayVisitors(SubjectRow):
    """The different visitors of a subject on a day of TIME_ZONE, or in a block of days.

    `subject` is that of an object, or the label of a model (`blog.post`). The visitors of several
    days or subjects are the union of their sketches. A block is the union of its days, so that long
    periods take few rows; only subjects with many visitors have blocks.
    """

    pk = models.CompositePrimaryKey("subject", "day", "length")
    day = models.DateField(db_index=True)  # the first one
    length = models.PositiveSmallIntegerField(default=1)  # number of days
    visitors = models.PositiveBigIntegerField()  # as the sketch counts them
    sketch = models.BinaryField()  # a HyperLogLog, as Redis has it
    # The length of the block that has the visitors of this row, too; 0 for none.
    part_of = models.PositiveSmallIntegerField(default=0)


class Popular(SubjectRow):
    """A subject in the list of the most viewed of the last days, and its views in these days.

    `days` is the number of days, which names the list. Full flushes renew the lists.
    """

    pk = models.CompositePrimaryKey("subject", "days")
    days = models.PositiveSmallIntegerField()
    views = models.PositiveBigIntegerField()
    since = models.PositiveIntegerField()  # the first hour of the list (since 1970, UTC)
    until = models.PositiveIntegerField()  # the hour after the last one


class Usual(OwnRow):
    """The usual views of a model, or of its objects in a section, by age, and what they gain in
    windows of age; or of a model or the site by hour of the week, or their past views that days
    are judged by. See sql/usual.py, sql/usual_week.py and sql/gained.py.

    Full flushes compute all rows anew, from history alone.
    """

    subject = ExactCharField(max_length=SUBJECT_LENGTH, primary_key=True)
    bands = models.TextField()  # or past views, as JSON
    hour = models.PositiveIntegerField()  # as of which they are (since 1970)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.subject)


class ReaderHistory(SubjectRow):
    """The number of readers of a category at the end of an hour in which it changed.

    Readers are those who have read the category since its last publication.
    """

    kept_with = "read state"

    pk = models.CompositePrimaryKey("subject", "hour")
    hour = models.PositiveIntegerField()
    readers = models.PositiveIntegerField()


class BreakdownHistory(SubjectRow):
    """By how much one field of the hashes of all objects of a model rose in an hour: a value of a
    dimension, or a stage of the funnel.

    Rows of other kinds have what a category, an author or an age gained, see `sql/group_sums.py`,
    or say that an hour is added up, see `sql/history_marks.py`.
    `subject` is the label of the model. Unlike the rows of History, the rows of a range of hours
    are added up.
    """

    kept_with = "nothing"

    pk = models.CompositePrimaryKey("subject", "kind", "hour", "field")
    kind = ExactCharField(max_length=KIND_LENGTH)
    hour = models.PositiveIntegerField()
    field = ExactCharField(max_length=100)
    count = models.PositiveBigIntegerField()


class DayBreakdown(SubjectRow):
    """By how much one field of an object's hashes rose on a day of TIME_ZONE: a value of a
    dimension, or a stage of the funnel.

    The rows of several days or objects are added up. Those of all objects of a model together are
    in BreakdownHistory, by the hour.
    """

    pk = models.CompositePrimaryKey("subject", "kind", "day", "field")
    kind = ExactCharField(max_length=KIND_LENGTH)
    day = models.DateField()
    field = ExactCharField(max_length=100)
    count = models.PositiveBigIntegerField()

    class Meta:
        default_permissions = ()
        # For all objects that had views with one value on some days.
        indexes = (models.Index(fields=["kind", "field", "day"], name="readtrack_value_by_day"),)


class Note(OwnRow):
    """A note on the charts, such as "newsletter sent"."""

    # The default is today in TIME_ZONE, which Django makes the time zone of the process.
    day = models.DateField(_("day"), default=date.today)
    text = models.CharField(_("text"), max_length=200)

    class Meta:
        verbose_name = _("note")
        verbose_name_plural = _("notes on the charts")
        ordering = ("day", "pk")
        # The same note twice on a day is one note.
        constraints = [
            models.UniqueConstraint(fields=["day", "text"], name="readtrack_note_once_a_day")
        ]

    def __str__(self) -> str:
        return self.text
