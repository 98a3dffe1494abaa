"""The tables of the app `tenants`."""

import apps.tenants.table_creation
import arbor.ids
import django.contrib.auth.models
import django.contrib.auth.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('tenants', '0001_squashed'),
        ('tenants', '0002_sessions'),
        ('tenants', '0003_energy_policy'),
        ('tenants', '0004_default_model'),
    ]

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        apps.tenants.table_creation.CreateModels(
            operations=[
                migrations.CreateModel(
                    name='Tenant',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('slug', models.SlugField(max_length=63, unique=True)),
                        ('name', models.CharField(max_length=200)),
                        ('status', models.CharField(choices=[('active', 'Active'), ('suspended', 'Suspended')], default='active', max_length=16)),
                        ('daily_beats', models.PositiveIntegerField(blank=True, null=True)),
                        ('daily_tokens', models.PositiveBigIntegerField(blank=True, null=True)),
                        ('daily_usd', models.DecimalField(blank=True, decimal_places=4, max_digits=12, null=True)),
                        ('energy', models.JSONField(blank=True, db_default={}, default=dict)),
                        ('default_model', models.CharField(blank=True, db_default='', default='', max_length=200)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                    ],
                    options={
                        'ordering': ['slug'],
                    },
                ),
                migrations.CreateModel(
                    name='User',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('password', models.CharField(max_length=128, verbose_name='password')),
                        ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                        ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                        ('username', models.CharField(error_messages={'unique': 'A user with that username already exists.'}, help_text='Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.', max_length=150, unique=True, validators=[django.contrib.auth.validators.UnicodeUsernameValidator()], verbose_name='username')),
                        ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                        ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                        ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                        ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                        ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                        ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                        ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                        ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
                    ],
                    options={
                        'verbose_name': 'user',
                        'verbose_name_plural': 'users',
                        'abstract': False,
                    },
                    managers=[
                        ('objects', django.contrib.auth.models.UserManager()),
                    ],
                ),
                migrations.CreateModel(
                    name='SignInFailure',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('at', models.DateTimeField()),
                        ('name_hash', models.CharField(max_length=64)),
                        ('address', models.CharField(max_length=64)),
                    ],
                    options={
                        'indexes': [models.Index(fields=['at'], name='tenants_failure_by_time'), models.Index(fields=['name_hash', 'at'], name='tenants_failure_by_name'), models.Index(fields=['address', 'at'], name='tenants_failure_by_address')],
                    },
                ),
                migrations.CreateModel(
                    name='ConsoleSession',
                    fields=[
                        ('session_key', models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name='session key')),
                        ('session_data', models.TextField(verbose_name='session data')),
                        ('expire_date', models.DateTimeField(db_index=True, verbose_name='expire date')),
                        ('public_id', models.UUIDField(editable=False, unique=True)),
                        ('signed_in_at', models.DateTimeField(null=True)),
                        ('seen_at', models.DateTimeField()),
                        ('address', models.CharField(blank=True, max_length=64)),
                        ('browser', models.CharField(blank=True, max_length=200)),
                        ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'verbose_name': 'session',
                        'verbose_name_plural': 'sessions',
                        'abstract': False,
                        'indexes': [models.Index(fields=['user', '-seen_at'], name='tenants_session_by_user')],
                    },
                ),
                migrations.CreateModel(
                    name='Membership',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('role', models.CharField(choices=[('viewer', 'Viewer'), ('operator', 'Operator'), ('owner', 'Owner')], default='viewer', max_length=16)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'member',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'default_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'user'), name='tenants_membership_once')],
                    },
                ),
            ],
        ),
    ]
