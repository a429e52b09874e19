import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from readtrack.models.fields import ExactCharField


class Migration(migrations.Migration):

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name='Import',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('source', models.CharField(max_length=64, unique=True)),
                ('name', ExactCharField(max_length=255)),
                ('first_line', models.CharField(blank=True, db_index=True, max_length=32)),
                ('digest', models.CharField(blank=True, max_length=32)),
                ('position', models.PositiveBigIntegerField(default=0)),
                ('intended', models.PositiveBigIntegerField(default=0)),
                ('part', models.TextField(blank=True)),
                ('since', models.PositiveBigIntegerField(default=0)),
                ('until', models.PositiveBigIntegerField(default=0)),
                ('times', models.CharField(blank=True, max_length=80)),
                ('started', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='ImportedLines',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveBigIntegerField()),
                ('ranges', models.TextField()),
                ('redis_time', models.BigIntegerField()),
                ('record', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='readtrack_imports.import')),
            ],
            options={
                'default_permissions': (),
                'unique_together': {('record', 'position')},
            },
        ),
    ]
