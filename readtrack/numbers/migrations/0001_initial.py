import datetime

from django.db import migrations, models

from readtrack.models.fields import ExactCharField
from readtrack.operations import SetFillfactor


class Migration(migrations.Migration):

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name='Breakdown',
            fields=[
                ('subject', ExactCharField(max_length=200)),
                ('pk', models.CompositePrimaryKey('subject', 'kind', 'field', blank=True, editable=False, primary_key=True, serialize=False)),
                ('kind', ExactCharField(max_length=40)),
                ('field', ExactCharField(max_length=100)),
                ('count', models.PositiveBigIntegerField()),
            ],
            options={
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='History',
            fields=[
                ('subject', ExactCharField(max_length=200)),
                ('pk', models.CompositePrimaryKey('subject', 'hour', blank=True, editable=False, primary_key=True, serialize=False)),
                ('hour', models.PositiveIntegerField()),
                ('views', models.PositiveBigIntegerField()),
                ('visitors', models.PositiveBigIntegerField()),
            ],
            options={
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Usual',
            fields=[
                ('subject', ExactCharField(max_length=200, primary_key=True, serialize=False)),
                ('bands', models.TextField()),
                ('hour', models.PositiveIntegerField()),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='DayVisitors',
            fields=[
                ('subject', ExactCharField(max_length=200)),
                ('pk', models.CompositePrimaryKey('subject', 'day', 'length', blank=True, editable=False, primary_key=True, serialize=False)),
                ('day', models.DateField(db_index=True)),
                ('length', models.PositiveSmallIntegerField(default=1)),
                ('visitors', models.PositiveBigIntegerField()),
                ('sketch', models.BinaryField()),
                ('part_of', models.PositiveSmallIntegerField(default=0)),
            ],
            options={
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Popular',
            fields=[
                ('subject', ExactCharField(max_length=200)),
                ('pk', models.CompositePrimaryKey('subject', 'days', blank=True, editable=False, primary_key=True, serialize=False)),
                ('days', models.PositiveSmallIntegerField()),
                ('views', models.PositiveBigIntegerField()),
                ('since', models.PositiveIntegerField()),
                ('until', models.PositiveIntegerField()),
            ],
            options={
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='ReaderHistory',
            fields=[
                ('subject', ExactCharField(max_length=200)),
                ('pk', models.CompositePrimaryKey('subject', 'hour', blank=True, editable=False, primary_key=True, serialize=False)),
                ('hour', models.PositiveIntegerField()),
                ('readers', models.PositiveIntegerField()),
            ],
            options={
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='BreakdownHistory',
            fields=[
                ('subject', ExactCharField(max_length=200)),
                ('pk', models.CompositePrimaryKey('subject', 'kind', 'hour', 'field', blank=True, editable=False, primary_key=True, serialize=False)),
                ('kind', ExactCharField(max_length=40)),
                ('hour', models.PositiveIntegerField()),
                ('field', ExactCharField(max_length=100)),
                ('count', models.PositiveBigIntegerField()),
            ],
            options={
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='DayBreakdown',
            fields=[
                ('subject', ExactCharField(max_length=200)),
                ('pk', models.CompositePrimaryKey('subject', 'kind', 'day', 'field', blank=True, editable=False, primary_key=True, serialize=False)),
                ('kind', ExactCharField(max_length=40)),
                ('day', models.DateField()),
                ('field', ExactCharField(max_length=100)),
                ('count', models.PositiveBigIntegerField()),
            ],
            options={
                'default_permissions': (),
                'indexes': [models.Index(fields=['kind', 'field', 'day'], name='readtrack_value_by_day')],
            },
        ),
        migrations.CreateModel(
            name='Note',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField(default=datetime.date.today, verbose_name='day')),
                ('text', models.CharField(max_length=200, verbose_name='text')),
            ],
            options={
                'verbose_name': 'note',
                'verbose_name_plural': 'notes on the charts',
                'ordering': ('day', 'pk'),
                'constraints': [models.UniqueConstraint(fields=('day', 'text'), name='readtrack_note_once_a_day')],
            },
        ),
        # Each flush updates the rows of what was viewed: those of an object for ever, those of an
        # hour or a day until it is over.
        SetFillfactor('Breakdown', 85),
        SetFillfactor('DayBreakdown', 85),
        SetFillfactor('DayVisitors', 85),
        SetFillfactor('History', 85),
    ]
