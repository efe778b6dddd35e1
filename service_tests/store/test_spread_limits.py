"""Limits of a store of many places, none of which knows what the others hold; all are on one server here."""

import pytest

from app.jobs.jobs import Jobs
from app.jobs.record import TooManyJobs
from app.store.account import Account, Quota
from app.store.aliases import AliasStore, IndexAlias
from app.store.connection import MANY, Client
from app.store.errors import QuotaExceeded
from app.store.indexes import IndexStore
from service_tests.ledger import assert_true
from service_tests.store.charged import put_dataset
from service_tests.store.new_indexes import entry, new_index
from service_tests.store.test_aliases import alias


@pytest.fixture
def client(client: Client) -> Client:
    client.places = MANY
    return client


def test_no_owner_has_more_names_than_it_leaves_to_others(client: Client) -> None:
    quota = Quota(None, 9)
    indexes, aliases = IndexStore(client, quota), AliasStore(client, IndexAlias, quota)
    for owner, n in (("a", 5), ("b", 2), ("c", 1)):
        for i in range(n):
            put_dataset(client, f"{owner}{i}", owner=owner, quota=quota)
        with pytest.raises(QuotaExceeded, match="key_names is"):
            put_dataset(client, "more", owner=owner, quota=quota)
        with pytest.raises(QuotaExceeded, match="key_names is"):
            indexes.create(new_index("more"), owner)
        with pytest.raises(QuotaExceeded, match="key_names is"):
            aliases.put(alias("a0", "more"), None, owner)
    indexes.create(new_index("last"))
    with pytest.raises(QuotaExceeded, match="max_store_names is 9"):
        indexes.create(new_index("more"))
    assert assert_true(client).names == 9


def test_no_key_takes_more_of_the_queue_than_it_leaves_to_others(client: Client) -> None:
    jobs = Jobs(client, 10, 600)
    for owner, n in (("a", 5), ("b", 3), ("c", 1)):
        for _ in range(n):
            jobs.submit("test-walk", {}, owner=owner)
        with pytest.raises(TooManyJobs, match=f"and {n} jobs of this key wait or run"):
            jobs.submit("test-walk", {}, owner=owner)
    jobs.submit("test-walk", {})
    with pytest.raises(TooManyJobs, match=r"^10 jobs wait; max_queued_jobs is 10$"):
        jobs.submit("test-walk", {})


def test_changes_at_the_same_time_in_two_places_pass_no_limit_together(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins and ends when the first has looked at the other places, and has stored nothing yet."""
    first, second = (IndexStore(client).create(new_index(name)) for name in ("i", "j"))
    assert MANY.of("i") != MANY.of("j")
    some, used = [entry(i) for i in range(100)], Account(client).usage().nbytes
    IndexStore(client).upsert(first, some)
    of_some = Account(client).usage().nbytes - used
    IndexStore(client).remove_many(first, [one.id for one in some])
    indexes, look = IndexStore(client, Quota(used + 2 * of_some - 1, None)), Account.elsewhere
    refused: list[str] = []

    def look_and_wait(account: Account, key: str, *owners: str) -> list[int]:
        found = look(account, key, *owners)
        if not refused:
            refused.append("")
            with pytest.raises(QuotaExceeded, match="max_store_bytes") as told:
                indexes.upsert(second, some)
            refused.append(str(told.value))
        return found

    monkeypatch.setattr(Account, "elsewhere", look_and_wait)
    assert indexes.upsert(first, some)
    assert len(refused) == 2
    assert assert_true(client).nbytes == used + of_some
    indexes.upsert(second, some[:40])
    indexes.upsert(second, some[:40])  # replaces them, and takes no more


def test_what_is_about_to_be_made_counts_in_all_places(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    quota = Quota(None, 1)
    indexes, check = IndexStore(client, quota), Account.check
    refused: list[str] = []

    def check_and_wait(account: Account, *given: object, **named: object) -> None:
        check(account, *given, **named)  # type: ignore[arg-type]
        if not refused:
            refused.append("i")
            with pytest.raises(QuotaExceeded, match="max_store_names is 1"):
                indexes.create(new_index("j"))
            refused.append("j")

    monkeypatch.setattr(Account, "check", check_and_wait)
    indexes.create(new_index("i"))
    assert refused == ["i", "j"]
    assert assert_true(client).names == 1


def test_an_alias_that_another_key_moves_counts_for_that_key(client: Client) -> None:
    aliases, account = AliasStore(client, IndexAlias), Account(client)
    account.allow("b", Quota(None, 2))
    before = [alias("i", name) for name in "xyz"]
    assert all(aliases.put(one, None, "a") for one in before)
    moved = [alias("j", one.name) for one in before]
    for one, there in zip(moved[:2], before, strict=False):
        assert aliases.put(one, there, "b")
    with pytest.raises(QuotaExceeded, match="key_names is 2"):
        aliases.put(moved[2], before[2], "b")
    assert aliases.put(alias("i", "x"), moved[0], "b")  # its own
    assert (account.usage("a").names, account.usage("b").names) == (1, 2)
