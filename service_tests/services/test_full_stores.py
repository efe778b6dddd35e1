"""What has been done is told as done, though the store takes no writes any more."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import redis

from app.core.progress import Progress
from app.core.spec import MapSpec
from app.services.aliases import AskedAlias
from app.services.asked import NOTHING, AskedSpec
from app.services.indexes import AskedIndex
from app.store.errors import StoreFull
from service_tests.servers import EVERY_WRITE, valkey, wire
from service_tests.services.crowds import GMM, service_with


def test_a_store_that_fills_up_behind_a_change_does_not_make_it_refused(tmp_path: Path) -> None:
    """References to what was changed are entered and removed beside the change itself."""
    with valkey(tmp_path, *EVERY_WRITE) as url, wire(url) as cut, redis.Redis.from_url(url) as store:
        service = service_with(cut.url, GMM, keep="codes")
        service.map_creation.create("n", AskedSpec(MapSpec.model_validate(GMM | {"seed": 4}), NOTHING), Progress())
        changes: list[Callable[[], object]] = [
            lambda: service.indexes.create("j", AskedIndex(map="m", keep="codes"), None),
            lambda: service.aliases.put("a", AskedAlias(map="m")),
            lambda: service.aliases.put("a", AskedAlias(map="n")),
            lambda: service.aliases.delete("a"),
            lambda: service.indexes.delete("j"),
        ]
        for change in changes:  # the scripts are known after this: else the reply that is lost says that they are not
            change()
        for lost, change in enumerate(changes):
            cut.lose_reply_to(b"schema_version", partial(store.config_set, "min-replicas-to-write", 1))
            change()
            assert cut.lost == lost + 1
            with pytest.raises(StoreFull):
                service.aliases.put("never", AskedAlias(map="m"))
            store.config_set("min-replicas-to-write", 0)
        assert [one.name for one in service.indexes.list("", None, 9).indexes] == ["i"]
        assert service.aliases.list("", None, 9).aliases == []
