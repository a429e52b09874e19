"""The form a reader publishes a post with."""

from django import forms

from demo_project.blog.models import Post


class PostForm(forms.ModelForm):
    """Everything a post needs; the author is whoever is signed in."""

    class Meta:
        model = Post
        fields = ("category", "title", "body")
        widgets = {"body": forms.Textarea(attrs={"rows": 10})}
