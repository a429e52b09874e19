"""URLs of every kind that a log may hold."""

from typing import Any

from django.conf.urls.i18n import i18n_patterns
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.urls import include, path, re_path
from django.views.generic import DetailView, UpdateView

from tests.site.models import Category, Headline, Page, Post, Product, Review


class PostPage(DetailView):
    model = Post


class ByCode(DetailView):
    def get_queryset(self) -> Any:
        return Post.objects.all()


class OwnObject(DetailView):
    model = Post

    def get_object(self, queryset: Any = None) -> Any:
        return Post.objects.get(title=self.kwargs["slug"])


class EditPost(UpdateView):
    model = Post
    fields = ("title",)


def show(request: HttpRequest, **kwargs: str) -> HttpResponse:
    return HttpResponse()


inner = [path("<int:number>/", show, name="show")]

urlpatterns = [
    path("posts/<int:pk>/", PostPage.as_view()),
    path("members/<int:pk>/", login_required(PostPage.as_view())),
    path(
        "news/<int:pk>/", DetailView.as_view(queryset=Post.objects.filter(title__startswith="News"))
    ),
    path("titles/<str:slug>/", DetailView.as_view(model=Post, slug_field="title")),
    path(
        "shelves/<str:name>/",
        DetailView.as_view(model=Post, slug_field="category__name", slug_url_kwarg="name"),
    ),
    path("numbers/<str:slug>/", DetailView.as_view(model=Post, slug_field="category__pk")),
    path("products/<str:pk>/", DetailView.as_view(model=Product)),
    path("pages/<str:pk>/", DetailView.as_view(model=Page)),
    path("reviews/<int:pk>/", DetailView.as_view(model=Review)),
    path("headlines/<int:pk>/", DetailView.as_view(model=Headline)),
    path("categories/<int:pk>/", DetailView.as_view(model=Category)),
    path("own/<str:slug>/", OwnObject.as_view()),
    path("code/<int:pk>/", ByCode.as_view()),
    path("posts/<int:pk>/edit/", EditPost.as_view()),
    path("shown/", include((inner, "site"), namespace="shown")),
    path("plain/<int:pk>/", show, name="plain"),
    path("none/", show, name="none"),
    re_path(r"^old/(?P<title>.+)$", show, name="old"),
    re_path(r"^tree/(.*)$", show, name="tree"),
    *i18n_patterns(path("posts/<int:pk>/", PostPage.as_view())),
    re_path(r"^((?:[\w\-]+/)*)$", show, name="any"),  # the form of wagtail_serve
]
