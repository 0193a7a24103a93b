"""What was purged and what was read, by one clock, and whether the promise was kept:

    when a purge has returned, no node begins an answer with older data.

An answer begins after it was asked for. So an answer is old if it was asked for after a purge of its page had
returned, and shows a version from before that purge. What overlaps proves nothing and is not judged.
"""

import bisect
import collections

Purge = collections.namedtuple("Purge", "returned page version node way")
Answer = collections.namedtuple("Answer", "asked page version node told")


class History:
    """Threads add to it; it is judged when they have ended."""

    def __init__(self):
        self.purges, self.answers = [], []

    def old(self):
        """Each old answer with the purge that it was asked for after."""
        pages = collections.defaultdict(lambda: ([], []))
        for purge in sorted(self.purges):
            times, newest = pages[purge.page]
            times.append(purge.returned)
            newest.append(max([purge, *newest[-1:]], key=lambda it: it.version))
        found = []
        for answer in self.answers:
            times, newest = pages[answer.page]
            before = bisect.bisect_left(times, answer.asked)
            if before and answer.version < newest[before - 1].version:
                found.append((answer, newest[before - 1]))
        return found


def judges_as_the_sentence_says():
    """Small histories whose verdict is plain. An AssertionError where one is judged otherwise."""
    purges = [Purge(10, 1, 2, "a", ""), Purge(20, 1, 3, "a", ""), Purge(30, 1, 1, "b", ""), Purge(5, 2, 9, "a", "")]
    for asked, page, version, is_old in (
        (9, 1, 1, False),  # before the purge returned
        (10, 1, 1, False),  # just then
        (11, 1, 1, True),
        (11, 1, 2, False),
        (11, 1, 7, False),  # newer than what was purged
        (25, 1, 2, True),
        (31, 1, 2, True),  # a later purge of an older version takes nothing back
        (31, 2, 8, True),
        (31, 3, 0, False),  # a page that was not purged
    ):
        history = History()
        history.purges = list(reversed(purges))
        history.answers = [Answer(asked, page, version, "b", "")]
        assert bool(history.old()) == is_old, (asked, page, version)
