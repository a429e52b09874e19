"""What people say in the forum."""

from random import Random

WORDS = (
    "I was there, and it was louder than that.",
    "My neighbour says the same about {topic}.",
    "Does anybody know who looks after {topic} now?",
    "Thank you. That was worth reading twice.",
    "There is more to say about {topic}, and I will.",
    "It closes at six, in case you go there.",
)


def remark(topic: str, rng: Random) -> str:
    """Returns what somebody says in a thread about the topic."""
    return rng.choice(WORDS).format(topic=topic)
