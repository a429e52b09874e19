"""Writes the articles: the same topic always gives the same text."""

from random import Random


def _paragraphs(text: str) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


PEOPLE = (
    "Ada Lindqvist",
    "Tomás Herrera",
    "Priya Raman",
    "Jonas Weber",
    "Mei Tanaka",
    "Amara Okafor",
    "Lucie Fournier",
    "Karim Haddad",
    "Elin Sørensen",
    "Marta Kowalska",
    "Owen Pryce",
    "Sofia Rossi",
)
ROLES = (
    "who has run it since spring",
    "a regular",
    "who keeps the records",
    "a neighbour",
    "who was there first",
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
FRAMES = ("Just in: news of {topic}", "A reader writes about {topic}", "One more visit to {topic}")

OPENINGS = _paragraphs("""
    On a grey {day} morning, {topic} looks like nothing much. By noon there is a queue, and nobody
    in it is in a hurry.

    It began with a handwritten note on a door. {number} weeks later, {topic} is what people here
    talk about first.

    There is a right time to see {topic}, and it is earlier than you think. We went on a {day},
    before the light was up.

    Nobody planned {topic}. It grew out of a broken promise, a spare set of keys and {number} people
    with a free {day}.

    Ask three people about {topic} and you get four stories. Most of them turn out to be true.

    The first thing you notice about {topic} is the sound. The second is that nobody looks at
    a telephone.

    For {number} years it did not occur to anyone to write about {topic}. That was, {person} says,
    the best thing that could happen.

    Officially, {topic} does not exist. It is on no map and in no budget, and on a {day} it is full.

    “Bring a coat,” was all the advice we got. It was good advice, and it says a lot about {topic}.

    In the end it was a spreadsheet that saved {topic}: {number} rows, two columns, and a name
    at the top that nobody recognised.

    Every {day}, a little before seven, {person} unlocks the gate. What follows is {topic}, and it
    has hardly changed in a decade.

    There was a plan to replace {topic} with something more efficient. There is now a drawer with
    {number} letters in it, all of them against.

    It is easy to walk past {topic}. Most people do, until someone asks them to hold the door.
""")

DETAILS = _paragraphs("""
    The figures are modest, and that is rather the point: {number} people took part in the first
    month, and almost all of them came back.

    “We did not set out to prove anything,” says {person}, {role}. “We only wanted it to work on
    a {day}.”

    For a long while {topic} was a line in somebody's notebook. The notebook still exists; it lies
    beside the till, tied with string.

    There were doubts. A public meeting in the spring ran {number} minutes over, and the record
    speaks of “considerable warmth”.

    What changed is not the place but the habit. People leave a little earlier, stay a little
    longer, and greet each other by name.

    “The first winter was hard,” {person} remembers. “Then someone brought soup, and after that
    nobody could give up.”

    Others have come to take a look. A delegation from across the valley spent a {day} measuring,
    photographing and asking what it costs.

    It costs less than it seems. A grant paid for the start; since then {number} small contributions
    a month have covered the rest.

    Not everything went well. An early version had to be taken apart again, and {person}, {role},
    still keeps the one part that failed.

    Spend an hour here and a pattern appears: the early ones want quiet, the late ones want company,
    and both want {topic} just as it is.
""")

ENDINGS = _paragraphs("""
    Will it last? {person} shrugs and looks at the clock. “Come back next {day},” is the answer.
    “You will see.”

    For now the plan is to change nothing. In a year that wanted to change everything, {topic} may
    be the boldest idea of all.

    When we leave, the door is still open. There is a list on the wall, with room for {number} more
    names.

    The next chapter is already pencilled in. Until then, {topic} will do what it has always done:
    turn up, and wait.
""")


def article(topic: str, *, seed: int) -> str:
    """Five to seven paragraphs about the topic. Neighbouring seeds open differently."""
    rng = Random(f"{seed}:{topic}")
    body = [
        OPENINGS[seed % len(OPENINGS)],
        *rng.sample(DETAILS, rng.randint(3, 5)),
        rng.choice(ENDINGS),
    ]
    return _tell(body, topic, rng)


def bulletin(topic: str, rng: Random) -> tuple[str, str]:
    """Title and body of a short follow-up, as the demo's readers publish it."""
    body = [rng.choice(OPENINGS), *rng.sample(DETAILS, 2)]
    return rng.choice(FRAMES).format(topic=topic), _tell(body, topic, rng)


def _tell(paragraphs: list[str], topic: str, rng: Random) -> str:
    return "\n\n".join(_fill(paragraph, topic, rng) for paragraph in paragraphs)


def _fill(text: str, topic: str, rng: Random) -> str:
    filled = text.format(
        topic=topic,
        person=rng.choice(PEOPLE),
        role=rng.choice(ROLES),
        day=rng.choice(DAYS),
        number=rng.randint(11, 90),
    )
    return filled[0].upper() + filled[1:]
