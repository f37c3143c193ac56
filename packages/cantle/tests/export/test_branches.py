"""Every entry has one place, whatever the tree looks like, and no tree makes a page deep."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantle.export.branches import Chain, Fork, branches, lay_out
from cantle_session.entries import Entry, entry_from_json
from tests.support.samples import samples


def user(entry_id: str, parent: str | None) -> Entry:
    return entry_from_json(
        {
            "type": "message",
            "id": entry_id,
            "parentId": parent,
            "message": {"role": "user", "content": entry_id},
        }
    )


def note(entry_id: str, parent: str | None) -> Entry:
    return entry_from_json(
        {"type": "label", "id": entry_id, "parentId": parent, "targetId": entry_id, "label": "x"}
    )


def positions(chain: Chain) -> list[int]:
    found: list[int] = []
    for item in chain.items:
        if isinstance(item, int):
            found.append(item)
        else:
            for way in item.ways:
                found += positions(way.chain) if way.chain else []
    return found


def depth(chain: Chain) -> int:
    inner = [way.chain for item in chain.items if isinstance(item, Fork) for way in item.ways if way.chain]
    return 1 + max(map(depth, inner), default=0)


def check(entries: list[Entry], leaf: str | None) -> Chain:
    chain = lay_out(entries, leaf)
    assert sorted(positions(chain)) == list(range(len(entries)))
    assert depth(chain) <= log2(max(len(entries), 1)) + 2
    return chain


@given(
    st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.booleans()), min_size=1, max_size=40),
    st.integers(0, 100),
)
def test_each_entry_has_one_place(shape, leaf):
    entries = []
    for position, (back, is_root, is_note) in enumerate(shape):
        parent = None if is_root or not position else f"e{max(0, position - 1 - back)}"
        entries.append((note if is_note else user)(f"e{position}", parent))
    end = f"e{leaf % len(entries)}"
    chain = check(entries, end)
    path: list[str] = []
    here: str | None = end
    while here is not None:
        path.insert(0, here)
        here = entries[int(here[1:])].parent_id
    line = [entries[item].id for item in chain.items if isinstance(item, int)]
    assert [entry_id for entry_id in line if entry_id in set(path)] == path


def comb(count: int) -> list[Entry]:
    """A path each of whose entries has another child."""
    spine = [user(f"s{number}", f"s{number - 1}" if number else None) for number in range(count // 2)]
    return [entry for number, own in enumerate(spine) for entry in (own, user(f"t{number}", own.id))]


SHAPES = {
    "path": lambda count: [user(f"e{n}", f"e{n - 1}" if n else None) for n in range(count)],
    "star": lambda count: [user(f"e{n}", "e0" if n else None) for n in range(count)],
    "roots": lambda count: [user(f"e{n}", None) for n in range(count)],
    "comb": comb,
    "binary": lambda count: [user(f"e{n}", f"e{(n - 1) // 2}" if n else None) for n in range(count)],
    "circle": lambda count: [user(f"e{n}", f"e{(n + 1) % count}") for n in range(count)],
    "one id": lambda count: [user("e", "e" if n else None) for n in range(count)],
    "lost": lambda count: [user(f"e{n}", f"no-{n}") for n in range(count)],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_odd_trees(shape):
    entries = SHAPES[shape](samples(20_000, 2_000))
    check(entries, entries[-1].id)
    check(entries, None)


def test_the_leaf_decides_which_way_goes_on():
    entries = [user("a", None), user("b", "a"), user("c", "a"), user("d", "c")]
    chain = lay_out(entries, "b")
    assert [item for item in chain.items if isinstance(item, int)] == [0, 1]
    fork = next(item for item in chain.items if isinstance(item, Fork))
    assert [(way.number, way.first, way.messages, way.chain is None) for way in fork.ways] == [
        (1, 1, 1, True),
        (2, 2, 2, False),
    ]
    assert branches(chain) == 2


def test_without_a_leaf_the_largest_way_goes_on():
    chain = lay_out([user("a", None), user("b", "a"), user("c", "a"), user("d", "c")], None)
    assert [item for item in chain.items if isinstance(item, int)] == [0, 2, 3]


def test_a_session_can_stand_where_others_go_on():
    chain = lay_out([user("a", None), user("b", "a"), user("c", "b")], "b")
    *line, fork = chain.items
    assert line == [0, 1]
    assert isinstance(fork, Fork) and fork.main is None and [way.first for way in fork.ways] == [2]


def test_bookkeeping_is_no_branch():
    entries = [user("a", None), note("n", "a"), note("o", "n"), user("b", "a")]
    chain = lay_out(entries, "b")
    assert chain.items == [0, 1, 2, 3]
    assert branches(chain) == 1


def test_no_such_leaf():
    with pytest.raises(KeyError):
        lay_out([user("a", None)], "b")


def test_nothing_at_all():
    assert lay_out([], None).items == []
