"""`manage.py seed`: readers, sections and posts to look at. Running it again adds nothing."""

from datetime import timedelta
from itertools import zip_longest
from typing import Any

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, Permission, User
from django.core.management.base import BaseCommand
from django.db import transaction
from django.utils import timezone

from demo_project.blog.headlines import SECTIONS
from demo_project.blog.models import Category, Post
from demo_project.blog.prose import PEOPLE, article
from demo_project.forum.seeding import add_forum

READERS = 20
BETWEEN = timedelta(
    hours=5, minutes=50
)  # the two newest posts; more and more before them, to fill a year


class Command(BaseCommand):
    """Seeds the newsroom."""

    help = "Adds the demo's readers, sections and posts where they are missing."

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        users = _add_users()
        categories = _add_categories()
        posts = _add_posts()
        add_forum()
        self.stdout.write(f"Seeded {users} users, {categories} categories and {posts} posts.")


def _add_users() -> int:
    known = set(User.objects.values_list("username", flat=True))
    fresh = User.objects.bulk_create(user for user in _users() if user.username not in known)
    group, _ = Group.objects.get_or_create(name="Authors")
    group.permissions.set(Permission.objects.filter(codename__in=("add_post", "view_post")))
    group.user_set.add(*(user for user in fresh if user.first_name))
    return len(fresh)


def _users() -> list[User]:
    password, of_authors = make_password("reader"), make_password("author")
    admin = User(
        username="admin", password=make_password("admin"), is_staff=True, is_superuser=True
    )
    readers = [
        User(username=f"reader{number}", password=password) for number in range(1, READERS + 1)
    ]
    return [admin, *readers, *(_author(name, password=of_authors) for name in PEOPLE)]


def _author(name: str, *, password: str) -> User:
    """Returns somebody who may see the numbers of what they have written, and no others."""
    first, last = name.split()
    return User(
        username=first.lower(), first_name=first, last_name=last, password=password, is_staff=True
    )


def _add_categories() -> int:
    known = set(Category.objects.values_list("name", flat=True))
    fresh = [
        Category(name=section.name, description=section.description, hue=section.hue)
        for section in SECTIONS
        if section.name not in known
    ]
    return len(Category.objects.bulk_create(fresh))


def _add_posts() -> int:
    known = set(Post.objects.values_list("title", flat=True))
    return len(Post.objects.bulk_create(post for post in _posts() if post.title not in known))


def _posts() -> list[Post]:
    now = timezone.now()
    categories = {category.name: category for category in Category.objects.all()}
    authors = list(User.objects.exclude(first_name="").order_by("pk"))
    # One post of each section in turn, so that the front page is mixed.
    rounds = zip_longest(
        *([(section, *headline) for headline in section.headlines] for section in SECTIONS)
    )
    queue = [entry for row in rounds for entry in row if entry]
    return [
        Post(
            category=categories[section.name],
            author=authors[number * 7 % len(authors)],
            title=title,
            body=article(topic, seed=number),
            published_at=now
            - BETWEEN * number * (1 + number / 10)
            - timedelta(minutes=number * 37 % 53),
        )
        for number, (section, title, topic) in enumerate(queue)
    ]
