from django.db import migrations, models

from readtrack.models.fields import ExactCharField


class Migration(migrations.Migration):

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name='DigestReader',
            fields=[
                ('user', ExactCharField(max_length=200, primary_key=True, serialize=False)),
                ('is_stopped', models.BooleanField(default=False)),
                ('sent_until', models.DateField(null=True)),
                ('was_empty', models.BooleanField(default=False)),
            ],
            options={
                'default_permissions': (),
            },
        ),
    ]
