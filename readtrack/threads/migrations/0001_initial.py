import django.utils.timezone
from django.db import migrations, models

from readtrack.models.fields import ExactCharField


class Migration(migrations.Migration):

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name='ReadTimes',
            fields=[
                ('key', ExactCharField(max_length=200, primary_key=True, serialize=False)),
                ('name', models.TextField()),
                ('tag', models.CharField(blank=True, default='', max_length=10)),
                ('times', models.BinaryField()),
                ('stored', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
            ],
            options={
                'default_permissions': (),
            },
        ),
    ]
