"""JSON values that hypothesis draws, the odd ones that other programs write among them."""

from __future__ import annotations

from hypothesis import strategies as st

from cantle_ai.codec import Json

text = st.text(st.characters(exclude_categories=[]), max_size=20)
"""Any code points, lone surrogates included."""

scalars: st.SearchStrategy[Json] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    text,
)

values: st.SearchStrategy[Json] = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(text, inner, max_size=4)),
    max_leaves=12,
)

objects = st.dictionaries(text, values, max_size=5)


def normal(value: Json) -> Json:
    """What is left of a value once it has been written: no NaN, no infinities, surrogate pairs as one character."""
    match value:
        case float():
            return value if abs(value) < float("inf") else None
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        case list():
            return [normal(item) for item in value]
        case dict():
            return {str(normal(key)): normal(item) for key, item in value.items()}
        case _:
            return value
