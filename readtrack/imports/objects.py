"""The tokens of what paths show, looked up many at once."""

from collections import OrderedDict
from collections.abc import Iterable

from django.db.models import Model

from readtrack import subjects
from readtrack.imports.urls import Rows, Target

KNOWN = 50_000  # targets whose tokens are remembered


class Objects:
    """Looks up what is not known yet, with one query for each view that shows it."""

    def __init__(self, *, limit: int = KNOWN) -> None:
        self.limit = limit
        self._known: OrderedDict[Target, str] = OrderedDict()

    def tokens(self, targets: Iterable[Target]) -> dict[Target, str]:
        """The token of each target; empty for an object that does not exist."""
        found: dict[Target, str] = {}
        unknown: dict[Rows, list[Target]] = {}
        for target in dict.fromkeys(targets):
            if target in self._known:
                self._known.move_to_end(target)
                found[target] = self._known[target]
            elif target.rows is None:
                found[target] = subjects.token(target.value)
            else:
                unknown.setdefault(target.rows, []).append(target)
        for rows, some in unknown.items():
            found.update(_looked_up(rows, some))
        self._known.update(found)
        while len(self._known) > self.limit:
            self._known.popitem(last=False)
        return found


def _looked_up(rows: Rows, targets: list[Target]) -> dict[Target, str]:
    model: type[Model] = rows.queryset.model
    values = [target.value for target in targets]
    pks = dict(rows.queryset.filter(**{f"{rows.field}__in": values}).values_list(rows.field, "pk"))
    return {target: subjects.token_of(model, pks[target.value]) if target.value in pks else "" for target in targets}
