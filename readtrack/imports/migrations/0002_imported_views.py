import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [('readtrack_imports', '0001_initial')]

    operations = [
        migrations.AddField(
            model_name='import',
            name='undone_since',
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name='ImportedViews',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveBigIntegerField()),
                ('redis_time', models.BigIntegerField()),
                ('views', models.BinaryField()),
                ('is_in_history', models.BooleanField()),
                ('is_announced', models.BooleanField(default=False)),
                ('record', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='readtrack_imports.import')),
            ],
            options={
                'default_permissions': (),
                'unique_together': {('record', 'position')},
            },
        ),
    ]
