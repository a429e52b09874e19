"""The forum's URLs."""

from django.urls import path

from demo_project.forum import views

app_name = "forum"
urlpatterns = [
    path("", views.ForumPage.as_view(), name="boards"),
    path("board/<int:pk>/", views.BoardPage.as_view(), name="board"),
    path("thread/<int:pk>/", views.ThreadPage.as_view(), name="thread"),
    path("thread/<int:pk>/reply/", views.ReplyPage.as_view(), name="reply"),
    path("read/", views.mark_all_read, name="read"),
]
