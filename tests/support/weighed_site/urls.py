"""The pages of a post and of a category."""

from django.contrib import admin
from django.urls import path
from django.views.generic import DetailView

from .models import Category, Post

categories = {"categories": Category._default_manager.all}
urlpatterns = [
    path("admin/", admin.site.urls),
    path("posts/<int:pk>/", DetailView.as_view(model=Post, extra_context=categories)),
    path("categories/<int:pk>/", DetailView.as_view(model=Category)),
]
