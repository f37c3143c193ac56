"""The index of the tree."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantle_session.tree import ROOT, Tree
from tests.support.samples import samples


def test_the_path_leads_from_the_root_to_the_leaf():
    tree = Tree()
    for entry_id, parent in [("a", None), ("b", "a"), ("c", "a"), ("d", "b")]:
        tree.add(entry_id, parent, "message")
    assert tree.path(3) == [0, 1, 3]
    assert tree.path(2) == [0, 2]
    assert tree.path(ROOT) == []
    assert tree.settle() == []


@given(st.lists(st.integers(min_value=-1, max_value=30), max_size=30))
@settings(max_examples=samples(1000, 100))
def test_paths_are_those_of_the_links(parents):
    tree = Tree()
    links = {}
    for position, parent in enumerate(parents):
        links[position] = parent if parent < position else ROOT
        tree.add(str(position), None if links[position] == ROOT else str(parent), "message")
    for position in links:
        expected: list[int] = []
        at = position
        while at != ROOT:
            expected.insert(0, at)
            at = links[at]
        assert tree.path(position) == expected


@given(st.lists(st.tuples(st.integers(0, 8), st.none() | st.integers(0, 8)), max_size=20))
@settings(max_examples=samples(2000, 300))
def test_whatever_the_links_are_every_path_ends(links):
    tree = Tree()
    for entry_id, parent in links:
        tree.add(str(entry_id), None if parent is None else str(parent), "message")
    problems = tree.settle()
    for position in range(len(links)):
        path = tree.path(position)
        assert path[-1] == position
        assert len(set(path)) == len(path)
    for position, _ in problems:
        assert tree.parent(position) == ROOT
    linked = [p for p in range(len(links)) if tree.parent(p) != ROOT or links[p][1] is None]
    assert sorted(linked + [position for position, _ in problems]) == list(range(len(links)))


def test_a_parent_that_comes_later_is_found():
    tree = Tree()
    tree.add("b", "a", "message")
    tree.add("a", None, "message")
    assert tree.settle() == []
    assert tree.path(0) == [1, 0]


def test_a_missing_parent_makes_a_root_and_is_told_once():
    tree = Tree()
    tree.add("b", "a", "message")
    assert tree.settle() == [(0, "its parent 'a' is missing")]
    assert tree.settle() == []
    assert tree.path(0) == [0]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_circle_is_cut_in_one_place(size):
    tree = Tree()
    for position in range(size):
        tree.add(str(position), str((position + 1) % size), "message")
    problems = tree.settle()
    assert len(problems) == 1
    assert "circle" in problems[0][1]
    assert sorted(len(tree.path(position)) for position in range(size)) == list(range(1, size + 1))


def test_an_id_that_occurs_twice_means_the_last_entry_before_its_child():
    tree = Tree()
    for entry_id, parent in [("a", None), ("b", "a"), ("a", "b"), ("c", "a")]:
        tree.add(entry_id, parent, "message")
    assert tree.path(3) == [0, 1, 2, 3]


@pytest.mark.fault("F06")
@pytest.mark.timeout(20)
def test_f06_a_branch_may_be_very_deep():
    tree = Tree()
    count = 300_000
    for position in range(count):
        tree.add(str(position), str(position - 1) if position else None, "message")
    assert len(tree.path(count - 1)) == count


@pytest.mark.timeout(20)
def test_a_file_whose_entries_are_in_reverse_order_takes_no_longer():
    tree = Tree()
    count = 100_000
    for position in range(count):
        tree.add(str(position), str(position + 1) if position < count - 1 else None, "message")
    assert tree.settle() == []
    assert len(tree.path(0)) == count
