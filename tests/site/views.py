"""Pages of the test site."""

from collections.abc import Iterator

from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.shortcuts import aget_object_or_404, get_object_or_404, render
from django.template.loader import render_to_string
from django.views.generic import DeleteView, DetailView

from readtrack import reports
from readtrack.request import TrackedRequest
from tests.site.models import Category, Manual, Post


class PostPage(DetailView):
    model = Post
    template_name = "site/post.html"


class CategoryPage(DetailView):
    model = Category
    template_name = "site/category.html"


class ManualPage(DetailView):
    model = Manual
    template_name = "site/manual.html"


class DeletePost(DeleteView):
    model = Post
    template_name = "site/post.html"
    success_url = "/list/"


def post_page(request: TrackedRequest, pk: int) -> HttpResponse:
    post = get_object_or_404(Post, pk=pk)
    request.readtrack.view(post)
    return render(request, "site/post.html", {"object": post})


async def apost_page(request: TrackedRequest, pk: int) -> HttpResponse:
    post = await aget_object_or_404(Post, pk=pk)
    request.readtrack.view(post)
    return render(request, "site/post.html", {"object": post})


def count_page(request: TrackedRequest, pk: int) -> JsonResponse:
    """The post's views as an API answers them, which counts the request that asks."""
    post = get_object_or_404(Post, pk=pk)
    if "quiet" not in request.GET:
        request.readtrack.view(post)
    return JsonResponse({"views": list(reports.views(Post.objects.order_by("pk")).values())})


async def acount_page(request: TrackedRequest, pk: int) -> JsonResponse:
    post = await aget_object_or_404(Post, pk=pk)
    request.readtrack.view(post)
    return JsonResponse({"views": list((await reports.aviews([post])).values())})


def status_page(request: TrackedRequest, pk: int, status: int) -> HttpResponse:
    request.readtrack.view(get_object_or_404(Post, pk=pk))
    return HttpResponse(status=status)


def category_page(request: TrackedRequest, pk: int) -> HttpResponse:
    category = get_object_or_404(Category, pk=pk)
    request.readtrack.read(category)
    return render(request, "site/category.html", {"object": category})


def listing(request: TrackedRequest) -> HttpResponse:
    return render(
        request,
        "site/list.html",
        {"posts": Post.objects.order_by("pk"), "categories": Category.objects.order_by("pk")},
    )


def bare_listing(request: TrackedRequest) -> HttpResponse:
    """The list without counts and dots."""
    lists = {"posts": Post.objects.order_by("pk"), "categories": Category.objects.order_by("pk")}
    return render(request, "site/bare.html", {**lists, "name": request.user.get_username()})


def stream(request: TrackedRequest) -> StreamingHttpResponse:
    def parts() -> Iterator[str]:
        for post in Post.objects.order_by("pk"):
            yield render_to_string("site/count.html", {"post": post}, request=request)

    return StreamingHttpResponse(parts(), content_type=request.GET.get("type", "text/html"))


def json_page(request: TrackedRequest) -> JsonResponse:
    posts = Post.objects.order_by("pk")
    return JsonResponse(
        {
            "posts": [
                render_to_string("site/count.html", {"post": post}, request=request)
                for post in posts
            ]
        }
    )


def buy(request: TrackedRequest, pk: int) -> HttpResponse:
    """A form that takes the visitor to the last stage of the post's funnel."""
    post = get_object_or_404(Post, pk=pk)
    request.readtrack.step(post, request.GET.get("stage", "convert"))
    if "view" in request.GET:
        request.readtrack.view(post)
    return HttpResponse(status=int(request.GET.get("status", 302)), headers={"Location": "/list/"})
