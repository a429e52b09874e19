import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from readtrack.models.fields import ExactCharField


class Migration(migrations.Migration):

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name='Alert',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('story', 'views far above the usual'), ('site', 'views of the site far below the usual'), ('flush', 'numbers are not saved'), ('redis', 'views are not counted')], max_length=10, verbose_name='kind')),
                ('name', ExactCharField(editable=False, max_length=220)),
                ('is_open', models.BooleanField(default=True, editable=False, null=True)),
                ('subject', models.TextField(blank=True, editable=False)),
                ('title', models.TextField(blank=True, verbose_name='title')),
                ('views', models.PositiveBigIntegerField(null=True, verbose_name='views')),
                ('usual', models.FloatField(null=True, verbose_name='usual')),
                ('minutes', models.PositiveIntegerField(null=True, verbose_name='minutes')),
                ('details', models.TextField(blank=True, verbose_name='details')),
                ('url', models.TextField(blank=True)),
                ('started', models.DateTimeField(default=django.utils.timezone.now, verbose_name='started')),
                ('ended', models.DateTimeField(null=True, verbose_name='ended')),
            ],
            options={
                'verbose_name': 'alert',
                'verbose_name_plural': 'alerts',
                'ordering': ('-started', '-pk'),
                'default_permissions': ('view',),
                'constraints': [models.UniqueConstraint(fields=('name', 'is_open'), name='readtrack_alert_once')],
            },
        ),
        migrations.CreateModel(
            name='AlertDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('channel', models.CharField(choices=[('signal', 'Signal'), ('mail', 'Mail'), ('webhook', 'Webhook')], max_length=10)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('due', models.DateTimeField(db_index=True, default=django.utils.timezone.now, null=True)),
                ('sent', models.DateTimeField(null=True)),
                ('error', models.TextField(blank=True)),
                ('alert', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='readtrack_alerts.alert')),
            ],
            options={
                'default_permissions': (),
                'unique_together': {('alert', 'channel')},
            },
        ),
    ]
