"""What is shown of a database's address."""

import pytest

from cantle_session.addresses import without_passwords
from cantle_session.errors import SessionFileError
from cantle_session.session import Session
from cantle_session.storage.store import open_store

SHOWN = [
    ("postgresql://ann:s3cret@db.example/notes", "postgresql://ann@db.example/notes"),
    ("postgres://ann:s3c:ret@db.example:5433", "postgresql://ann@db.example:5433"),
    ("postgresql://ann:s3c?ret@db.example/x", "postgresql://ann@db.example/x"),
    ("postgresql://ann:s3c%zz@db.example/x", "postgresql://ann@db.example/x"),
    ("postgresql://:s3cret@db.example/x", "postgresql://@db.example/x"),
    ("postgresql://ann:s3cret@[::1]:5433/x?sslmode=require", "postgresql://ann@[::1]:5433/x?sslmode=require"),
    ("postgresql://db.example/notes?password=s3cret&user=ann", "postgresql://db.example/notes?user=ann"),
    ("postgresql://db.example/notes?user=ann&password=s3cret", "postgresql://db.example/notes?user=ann"),
    ("postgresql://db.example/notes?password=s3cret", "postgresql://db.example/notes"),
    ("postgresql://db.example/notes?password=s3c&ret", "postgresql://db.example/notes"),
    ("postgresql://db.example/notes?%70assword=s3c=ret", "postgresql://db.example/notes"),
    ("postgresql://db.example/notes?sslpassword=s3cret", "postgresql://db.example/notes"),
    ("postgresql://db.example/notes?PASSWORD=s3cret", "postgresql://db.example/notes"),
    ("postgresql:///notes?host=%2Ftmp", "postgresql:///notes?host=%2Ftmp"),
    ("postgresql://a:s3cret@one.example,two.example:5433/x", "postgresql://a@one.example,two.example:5433/x"),
]
NO_ADDRESSES = [
    "postgresql://ann:s3c/ret@db.example/notes",
    "postgresql://ann:12/s3cret@db.example/notes",
    "postgresql://ann:s3c@ret@db.example/notes",
    "postgresql://ann:s3cret",
    "postgresql://ann:s3cret@[::1",
]


@pytest.mark.parametrize(("address", "shown"), SHOWN)
def test_a_password_is_left_out(address: str, shown: str) -> None:
    assert without_passwords(address) == shown
    assert without_passwords(f"{address}#0197a3d2-7c1e") == f"{shown}#0197a3d2-7c1e"
    assert without_passwords(shown) == shown
    assert open_store(address).location == shown


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_nothing_is_shown_of_what_is_no_address(address: str) -> None:
    assert without_passwords(address) == without_passwords(f"{address}#abc") == "postgresql://…"
    with pytest.raises(SessionFileError, match="write %40 for '@'"):
        open_store(address)


@pytest.mark.parametrize("location", ["", "/a/postgres://b", "sqlite:x.db#a", "s.jsonl"])
def test_other_locations_are_what_they_are(location: str) -> None:
    assert without_passwords(location) == location


@pytest.mark.parametrize(
    "address", [*(address for address, _ in SHOWN), *NO_ADDRESSES, "postgresql://a:s3c#ret@h/x"]
)
def test_no_error_says_a_password(address: str) -> None:
    pytest.importorskip("psycopg")
    nowhere = address.replace("db.example", "127.0.0.1:1").replace("[::1]:5433", "127.0.0.1:1")
    ways = [
        lambda: open_store(f"{nowhere}#"),
        lambda: Session.open(nowhere),
        lambda: open_store("postgresql://127.0.0.1:1/x").delete(f"{nowhere}#abc"),
        lambda: open_store("sqlite:x.db").rename(f"{nowhere}#abc", "name"),
    ]
    if "127.0.0.1" in nowhere and "," not in nowhere:
        ways += [lambda: open_store(nowhere).sessions(), lambda: Session.open(f"{nowhere}#abc")]
    for way in ways:
        with pytest.raises(SessionFileError) as caught:
            way()
        assert "s3c" not in str(caught.value) and "ret@" not in str(caught.value)
