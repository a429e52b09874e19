"""Django REST framework: fields for counts and dots, and a mixin that counts views."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.contrib.auth.models import AnonymousUser
from rest_framework.serializers import BooleanField, Field, IntegerField, ListSerializer

from readtrack import reports


class NumberField(Field):  # type: ignore[misc]  # the framework has no types
    """Base of the fields. In a serializer with `many=True`, one question gets the numbers of all
    objects of the list.

    `source` names the object whose number it is, as in `UnreadField(source="category")`. By default
    it is the object that the serializer shows. In a serializer within another one, each object asks
    for itself.
    """

    numbers: Callable[..., Mapping[Any, Any]]  # takes objects, returns the number of each

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"source": "*", **options, "read_only": True})
        self._numbers_by_object: dict[Any, Any] = {}

    def to_representation(self, value: Any) -> Any:
        """Returns the number of the object `value`. The first call gets those of the whole list."""
        if value not in self._numbers_by_object:
            objs = {value, *self._objects_of_list()}
            self._numbers_by_object.update(self.numbers(objs - {None}))
        return self._numbers_by_object[value]

    def _objects_of_list(self) -> Iterable[Any]:
        """Returns the objects of all rows in a serializer with `many=True`; else none."""
        serializer = self.parent.parent
        if not isinstance(serializer, ListSerializer):
            return ()
        instances = serializer.instance
        if not isinstance(instances, Iterable):
            return ()
        return map(self.get_attribute, instances)


# Each field is also one of the framework's own kinds, by which schemas of OpenAPI know its type.


class ViewCountField(NumberField, IntegerField):  # type: ignore[misc]
    """The live views, as `reports.views` returns them."""

    numbers = staticmethod(reports.views)


class _OfReaderField(NumberField):
    """Base of the fields whose numbers are those of the user of the request."""

    def numbers(self, objs: Iterable[Any]) -> Mapping[Any, int]:
        user = getattr(self.context.get("request"), "user", AnonymousUser())
        return reports.unread_counts(user, objs)


class UnreadCountField(_OfReaderField, IntegerField):  # type: ignore[misc]
    """The number of new items for the user of the request; see `reports.unread_counts`."""


class UnreadField(_OfReaderField, BooleanField):  # type: ignore[misc]
    """True if there is anything new."""

    def to_representation(self, value: Any) -> bool:
        return bool(super().to_representation(value))


class CountViewsMixin:
    """For `RetrieveAPIView` and view sets: counts a view of the object that is retrieved. Put it
    first.
    """

    request: Any

    def get_object(self) -> Any:
        obj = super().get_object()  # type: ignore[misc]
        self.request.readtrack.view(obj)  # counts only if the method is GET
        return obj
