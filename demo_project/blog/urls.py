"""The newsroom's URLs."""

from django.urls import path

from demo_project.blog import views

app_name = "blog"
urlpatterns = [
    path("", views.FrontPage.as_view(), name="front"),
    path("category/<int:pk>/", views.CategoryPage.as_view(), name="category"),
    path("post/<int:pk>/", views.PostPage.as_view(), name="post"),
    path("publish/", views.PublishPage.as_view(), name="publish"),
]
