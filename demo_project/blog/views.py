"""The newsroom's pages. None of them counts anything: the middleware sees what they show."""

from typing import Any

from django.contrib.auth.mixins import LoginRequiredMixin
from django.contrib.messages.views import SuccessMessageMixin
from django.core.paginator import Paginator
from django.db.models import prefetch_related_objects
from django.forms import ModelForm
from django.http import HttpResponse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import cache_control, cache_page
from django.views.generic import CreateView, DetailView, ListView, TemplateView

from demo_project.blog.forms import PostForm
from demo_project.blog.models import TURNS, Category, Post
from readtrack import reports
from readtrack.numbers import reports as numbers_reports
from readtrack.script.shared import shared_page

PAGE_SIZE = 12


class FrontPage(ListView):
    """The newest posts of all sections, beside what is read most."""

    queryset = Post.objects.select_related("category", "author")
    template_name = "blog/front.html"
    paginate_by = PAGE_SIZE + 1  # the lead story, and pairs

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        trending = reports.trending(limit=5)
        prefetch_related_objects([trend.obj for trend in trending], "category")
        most_read = reports.most_viewed(Post.objects.select_related("category"), 5)
        return super().get_context_data(trending=trending, most_read=most_read, **kwargs)


class CategoryPage(DetailView):
    """One section. Opening it is what makes its dot go away."""

    model = Category

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        posts = self.object.posts.select_related("category", "author")
        page = Paginator(posts, PAGE_SIZE).get_page(self.request.GET.get("page"))
        return super().get_context_data(page_obj=page, **kwargs)


class PostPage(DetailView):
    """One post. Opening it is what counts as a view."""

    queryset = Post.objects.select_related("category", "author")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        post = self.object
        more = post.category.posts.exclude(pk=post.pk).select_related("category", "author")[:4]
        numbers = {"reading": numbers_reports.reading(post), "funnel": numbers_reports.funnel(post)}
        devices = numbers_reports.breakdown(post, "device")
        return super().get_context_data(more=more, devices=devices, **numbers, **kwargs)


# The cache keeps a page before its counts are filled in, and serves it to everybody.
shared = method_decorator([cache_page(60, cache="pages"), shared_page], name="dispatch")


@shared
class EveningEdition(ListView):
    """The newest posts, on pages that are the same for everybody."""

    queryset = Post.objects.select_related("category", "author")[:PAGE_SIZE]
    template_name = "blog/evening.html"
    extra_context = {"is_shared": True}


@shared
class EveningPost(PostPage):
    """A post of the evening edition. Its script tells that it was opened."""

    extra_context = {"is_shared": True}


class PublishPage(LoginRequiredMixin, SuccessMessageMixin, CreateView):
    """Whoever is signed in may publish, so that a newcomer can make a dot appear."""

    model = Post
    form_class = PostForm
    success_message = "Published. Every reader now has a dot beside %(category)s."

    def get_initial(self) -> dict[str, Any]:
        return {"category": self.request.GET.get("category")}

    def form_valid(self, form: ModelForm) -> HttpResponse:
        form.instance.author = self.request.user
        answered = self.request.POST.get("answer", "")
        if answered.isdecimal() and (post := Post.objects.filter(pk=answered).first()):
            self.request.readtrack.step(post, "convert")  # type: ignore[attr-defined]
        return super().form_valid(form)


@method_decorator(cache_control(max_age=60), name="dispatch")
class Colours(TemplateView):
    """The sections' colours as a style sheet, because a strict content security policy refuses
    `style="…"`.
    """

    template_name = "blog/colours.css"
    content_type = "text/css"
    extra_context = {"turns": range(TURNS)}
