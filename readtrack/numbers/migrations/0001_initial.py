import datetime

from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
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
    ]
