import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='What the token is for.', max_length=100, verbose_name='name')),
                ('prefix', models.CharField(editable=False, max_length=8, verbose_name='begins with')),
                ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('created', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('last_used', models.DateTimeField(editable=False, null=True, verbose_name='last used')),
                ('expires', models.DateTimeField(blank=True, help_text='Without a time it does not expire.', null=True, verbose_name='expires')),
                ('revoked', models.DateTimeField(editable=False, null=True, verbose_name='revoked')),
                ('user', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user')),
            ],
            options={
                'verbose_name': 'API token',
                'verbose_name_plural': 'API tokens',
                'ordering': ('-created',),
                'default_permissions': ('add',),
            },
        ),
    ]
