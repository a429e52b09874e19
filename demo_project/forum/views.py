"""The forum's pages. Opening a thread marks it read: the middleware sees what the page shows."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.contrib.auth.mixins import LoginRequiredMixin
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST
from django.views.generic import CreateView, DetailView, ListView

from demo_project.forum.models import Board, Reply, Thread
from readtrack import tracker

NEWEST = 50  # threads on the page of a board


class ForumPage(ListView):
    """All boards."""

    model = Board
    template_name = "forum/boards.html"


class BoardPage(DetailView):
    """The newest threads of a board: all their dots and numbers take one round trip."""

    model = Board
    template_name = "forum/board.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(threads=self.object.threads.all()[:NEWEST], **kwargs)


class ThreadPage(DetailView):
    """A thread, with a link to the first reply that is new to the reader."""

    queryset = Thread.objects.select_related("board")
    template_name = "forum/thread.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        replies = self.object.replies.select_related("author")
        return super().get_context_data(replies=replies, **kwargs)


class ReplyPage(LoginRequiredMixin, CreateView):
    """Whoever is signed in may reply."""

    model = Reply
    fields = ("text",)
    template_name = "forum/reply.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(thread=self._thread(), **kwargs)

    def form_valid(self, form: ModelForm) -> HttpResponse:
        thread = self._thread()
        reply = form.instance
        reply.thread = thread
        reply.author = self.request.user
        reply.save()
        Thread.objects.filter(pk=thread.pk).update(last_reply_at=reply.written_at)
        return redirect(f"{thread.get_absolute_url()}#reply-{reply.pk}")

    def _thread(self) -> Thread:
        return get_object_or_404(Thread.objects.select_related("board"), pk=self.kwargs["pk"])


@login_required
@require_POST
def mark_all_read(request: HttpRequest) -> HttpResponse:
    """Marks all threads read, or those of one board: one write, whatever is unread."""
    board = None
    if pk := request.POST.get("board"):
        board = get_object_or_404(Board, pk=pk)
    tracker.mark_all_read(request.user, Thread, within=board)
    return redirect(board or "forum:boards")
