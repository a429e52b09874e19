"""Recording a hit, in one round trip."""

from collections.abc import Collection, Sequence
from time import perf_counter
from typing import Any, cast

from readtrack import parts
from readtrack.hits.addresses import watch
from readtrack.hits.hit import Hit, Outcome, Reason
from readtrack.store import clock, counting, day_keys, keys, packed, read_state, scripts
from readtrack.store.counters import Name
from readtrack.store.limits import rate_limit
from readtrack.store.scripts import Call
from readtrack.store.skips import key_of, skip_buffer

MOST_TRIES = 3  # of marking a page's reads again
KINDS_OF_DAY = frozenset({"hash", "day"})  # of visitors whose id needs the key of a day

Step = tuple[str, str]  # a subject, and a stage of its funnel or one that a part counts


def record(hit: Hit, *extra_calls: Call[Any]) -> Outcome:
    """Counts the hit's views and steps, and marks its reads, in one round trip.

    The round trip also runs the extra calls. There is another round trip before it with several
    partitions, and once a day in each process for visitors without a cookie. Raises
    redis.RedisError.
    """
    if not extra_calls and _is_alone(hit):
        return _record_view(hit)
    if hit.visitor.kind == "hash":
        hit = hit._replace(visitor=day_keys.resolve(hit.visitor, at=hit.at))
    hits = 0  # of the visitor in the rate window; 0 where record.lua counts them
    if keys.is_divided():
        hits = _count_rate(hit)
    view_calls = [packed.count_views(portion, hits=hits) for portion in by_partition(hit)]
    page_began = 0
    mark_calls: list[Call[tuple[str, ...]]] = []
    if hit.reads:
        page_began = _reckoned_beginning(hit)
        mark_calls = _marks(hit)
    step_calls: list[Call[list[Step]]] = []
    if hits < keys.ROBOT:
        step_calls = calls_of_steps(hit)
    further_calls = [*_upkeep(hit), *parts.calls_of_hit(hit), *extra_calls]
    # Views come before steps, because a step on the viewed page follows its view.
    _run([*view_calls, *mark_calls, *step_calls, *further_calls])

    outcome = _outcome_of(hit, view_calls, has_counted_rate=hits > 0)
    _count_skips(hit, outcome)
    if not (mark_calls or step_calls):
        return outcome
    read = _read(hit, mark_calls, page_began=page_began)
    return outcome._replace(read=tuple(read), steps=_results_of(step_calls))


def _is_alone(hit: Hit) -> bool:
    """Returns True if the round trip of the hit has to count one view and nothing else, as that of
    most pages.
    """
    if len(hit.views) != 1 or hit.reads or hit.steps or hit.part_record:
        return False
    if hit.visitor.kind in KINDS_OF_DAY or keys.is_divided() or parts.calls_of_hit(hit):
        return False
    now = perf_counter()
    are_skips_due = skip_buffer.skips and now >= skip_buffer.due
    return not (are_skips_due or now >= clock.due)


def _record_view(hit: Hit) -> Outcome:
    """Counts the only view of a hit that is alone in its round trip."""
    command = packed.command_of(hit)
    if not command:
        outcome = scripts.run(counting.count_views(hit))
    else:
        answer = scripts.answer_to(command)
        if answer == [counting.COUNTED]:  # as most are
            outcome = Outcome(hit.views)
        else:
            outcome = scripts.result_by(packed.call_of(hit, command), answer)
    if outcome.skipped or watch.notices:
        _count_skips(hit, outcome)
    return outcome


def _count_skips(hit: Hit, outcome: Outcome) -> None:
    """Adds the skips to those that wait, unless the hit is a report.

    A report mostly tells of what was counted before, so its repeats are expected.
    """
    reasons: Collection[Reason] = outcome.skipped.values()
    if hit.is_report:
        reasons = ()
    if reasons or watch.notices:
        skip_buffer.add(key_of(hit.at), reasons)


def _run(calls: Sequence[Call[Any]]) -> None:
    """Runs the calls in one round trip, with the waiting skips if they are due."""
    if skip_buffer.skips and perf_counter() >= skip_buffer.due:
        skip_buffer.send(*calls)
    else:
        scripts.run_all(*calls)


def _count_rate(hit: Hit) -> int:
    """Counts the hit in the visitor's rate if it has views. Returns the hits in the rate window.

    Only with partitions. Without them record.lua counts the hit.
    """
    if not (hit.views or hit.steps or hit.part_record):
        return 0
    return scripts.run(rate(hit, int(bool(hit.views))))


def by_partition(hit: Hit) -> list[Hit]:
    """Returns the hit in portions: views of one partition each, and no more than a script takes.

    Only the views are divided: each portion has all other fields of the hit.
    """
    if len(hit.views) == 1:
        return [hit]
    portions = scripts.parted(hit.views)
    if len(portions) == 1:
        return [hit]
    return [hit._replace(views=tuple(subjects)) for subjects in portions]


def _marks(hit: Hit) -> list[Call[tuple[str, ...]]]:
    """Returns the calls that mark the hit's categories read, of which it has some."""
    reader = cast(Any, hit.reader)
    return read_state.marks(reader, hit.reads, began=hit.began, as_of=hit.as_of, absent=())


def _reckoned_beginning(hit: Hit) -> int:
    """Returns when the page began by what is known of Redis's clock (µs); 0 if that is not
    reckoned.
    """
    if hit.began is None or keys.test_prefix():
        return 0
    return clock.at(hit.began)


def _read(hit: Hit, marks: Sequence[Call[tuple[str, ...]]], *, page_began: int) -> list[str]:
    """Returns those of the hit's categories that are read after the calls which mark them.

    `page_began` is when the page began as it was reckoned before the calls (µs), 0 if it was not.
    """
    read = [*_results_of(marks)]
    if page_began and len(read) < len(hit.reads):
        read += _marked_again(hit, read, page_began=page_began)
    return read


def _results_of(calls: Sequence[Call[Any]]) -> tuple[Any, ...]:
    """Returns all items of the results of the calls, which are sequences."""
    return tuple([item for call in calls for item in call.result])


def _marked_again(hit: Hit, read: Sequence[str], *, page_began: int) -> list[str]:
    """Marks again those of the hit's categories that are still unread, if this process was wrong
    about the time when the page began. Returns the categories that are read now.

    `page_began` is that time (µs of Redis's clock) as it was reckoned before the round trip. A
    category stays unread if it was published to after that time. The answers of the round trip may
    have told Redis's clock better, and then the page began later than was thought, and perhaps
    after the publication. That is rare, so few pages pay for a further round trip. If the page
    began much later than was thought, Redis's clock was set, and nothing is marked again.
    """
    newly_read: list[str] = []
    for _ in range(MOST_TRIES):
        page_began_before = page_began
        page_began = _reckoned_beginning(hit)
        still_unread = [subject for subject in hit.reads if subject not in {*read, *newly_read}]
        if not still_unread or not 0 < page_began - page_began_before < clock.STEP:
            break
        calls = _marks(hit._replace(reads=tuple(still_unread)))
        _run(calls)
        newly_read += _results_of(calls)
    return newly_read


def _upkeep(hit: Hit) -> list[Call[Any]]:
    """Returns the calls that a process runs from time to time, for the round trip of a hit."""
    calls: list[Call[Any]] = []
    if hit.visitor.kind == "day":
        calls += day_keys.upkeep(hit.at)
    if perf_counter() >= clock.due:
        calls.append(clock.question())
    return calls


def _outcome_of(hit: Hit, views: Sequence[Call[Outcome]], *, has_counted_rate: bool) -> Outcome:
    """Returns the outcome of the views of all partitions.

    If none of them counts, the hit is taken back from the rate where `takes_back` says so.
    """
    if len(views) == 1 and not has_counted_rate:
        return views[0].result
    counted: list[str] = []
    skipped: dict[str, Reason] = {}
    for call in views:
        counted += call.result.counted
        skipped.update(call.result.skipped)
    if views and not counted and takes_back(hit):
        scripts.run(rate(hit, -1))
    return Outcome(tuple(counted), skipped)


def will_count(hit: Hit) -> list[str]:
    """Returns the subjects of the hit's views that would count now, in one round trip.

    Raises redis.RedisError.
    """
    visitor = day_keys.resolve(hit.visitor, at=hit.at)
    rate_call: Call[int] = Call(
        "GET", [keys.rate(visitor.rate_id)], (), lambda hits: int(hits or 0)
    )
    window_calls: list[Call[int]] = []  # read the number of open windows, for each subject
    for subject in hit.views:
        window_keys = [keys.window(identity, subject) for identity in visitor.identities]
        window_calls.append(Call("EXISTS", window_keys, (), int))
    hits, *open_windows = scripts.run_all(rate_call, *window_calls)
    if hits >= rate_limit().hits:
        return []
    windows_by_subject = zip(hit.views, open_windows, strict=True)
    return [subject for subject, windows in windows_by_subject if windows == 0]


def rate(hit: Hit, change: int) -> Call[int]:
    """Returns the call that counts the hit (1), takes it back (-1), or only reads the rate (0).

    The result is the number of the visitor's hits in the rate window. For a rate in another
    partition than the views.
    """
    arguments = (change, rate_limit().seconds)
    return Call("rate", [keys.rate(hit.visitor.rate_id)], arguments, int, absent=1)


def takes_back(hit: Hit) -> bool:
    """Returns True if the hit has to be taken back from the rate when none of its views counts.

    That is so for a report on a page, because the page's own request was a hit already.
    Without partitions record.lua takes it back.

    A hit with a new cookie is not taken back: the rate limits how many refused hits open windows of
    new cookies (`counting.NEWCOMERS`), so it has to count them.
    """
    if not keys.is_divided() or hit.visitor.new_cookie:
        return False
    return hit.is_report or hit.stand_in != ""  # only reports have a stand-in


def calls_of_steps(hit: Hit) -> list[Call[list[Step]]]:
    """Returns the calls that take the visitor to the hit's stages, and record what a part does of
    it.

    The result of a call has the stages that the visitor had not reached before.
    """
    if not (hit.steps or hit.part_record):
        return []
    calls = [_step(hit, subject, stage) for subject, stage in hit.steps]
    if hit.part_record:
        calls.append(hit.part_record.call(hit))
    return calls


def _step(hit: Hit, subject: str, stage: str) -> Call[list[Step]]:
    """Returns the call that takes the visitor to a stage of the subject's funnel.

    A pass is a key with the name of the last stage that one visitor has reached before.
    """
    stages = parts.stages()
    number = stages.index(stage) + 1
    passes = [keys.funnel_pass(identity, subject) for identity in hit.visitor.identities]
    shared_keys, shared_arguments = of_hash(hit, ("funnel", subject))
    arguments = [*shared_arguments, keys.funnel_pass.ttl, number, *stages]

    def decode(is_new: int) -> list[Step]:
        if not is_new:
            return []
        return [(subject, stage)]

    return Call("step", [*shared_keys, *passes], arguments, decode, absent=[])


def of_hash(hit: Hit, name: Name) -> tuple[list[str], list[str | int]]:
    """Returns the keys and arguments with which a script begins that counts stages in a hash.

    `name` is that of the hash. See step.lua.
    """
    _, subject = name
    tag = keys.tag(subject)
    unsettled = keys.unsettled(tag)
    member = keys.member(*name)
    rate_key = keys.rate(hit.visitor.rate_id)
    if tag:  # then the rate is in another partition, and `unsettled` twice tells the script so
        rate_key = unsettled
    key_names = [rate_key, unsettled, keys.prefix() + member, keys.changed(tag)]
    return key_names, [keys.ROBOT, member, subject, keys.changed.ttl]
