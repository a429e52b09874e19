"""The newsroom's URLs."""

from django.urls import path

from demo_project.blog import views
from demo_project.blog.hits import hits

app_name = "blog"
urlpatterns = [
    path("", views.FrontPage.as_view(), name="front"),
    path("category/<int:pk>/", views.CategoryPage.as_view(), name="category"),
    path("post/<int:pk>/", views.PostPage.as_view(), name="post"),
    path("evening/", views.EveningEdition.as_view(), name="evening"),
    path("evening/<int:pk>/", views.EveningPost.as_view(), name="evening-post"),
    path("hits/", hits, name="hits"),
    path("colours.css", views.Colours.as_view(), name="colours"),
    path("publish/", views.PublishPage.as_view(), name="publish"),
]
