"""Whether the service is ready, and its versions."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

from app.services.warm_up import get_ready
from app.store.errors import StoreFull, StoreReadOnly, StoreUnavailable
from app.store.servers import StoreInfo


@dataclass
class Status:
    """Readiness of the service."""

    keeping: Callable[[], StoreInfo]
    """Asks the store how it keeps what it is given; StoreUnavailable if it does not answer."""
    check_writable: Callable[[], list[str]]
    """Raises StoreUnavailable unless the store takes a key; tells of parts of it that do not."""
    allow_volatile: bool
    """Whether a store that may lose or evict maps will do."""
    cold: str | None = "the warm-up has not ended yet"
    """Why requests would have to wait for a compiler; None once they would not."""

    def unfit(self) -> str | None:
        """Why the store may lose maps that it has taken; None if it will not, or if the operator accepts that."""
        return self._unfit(self.keeping())

    def _unfit(self, store: StoreInfo) -> str | None:
        reason = store.unfit()
        if reason is None or self.allow_volatile:
            return None
        return f"{reason}; BOCHNER_ALLOW_VOLATILE_STORE=true accepts it"

    def readiness(self) -> tuple[str | None, list[str]]:
        """Why requests should not come yet, None if the service is ready; and what an operator should look at.

        A store that is full, or a replica, is no reason: what it has is served.
        """
        try:
            store = self.keeping()
            warnings = store.warnings
            try:
                warnings = warnings + self.check_writable()
            except (StoreFull, StoreReadOnly) as error:
                warnings = warnings or [str(error)]
            return self._unfit(store) or self.cold, warnings
        except StoreUnavailable as error:
            return str(error), []

    def warm_up(self) -> None:
        """Compile what is compiled at first use. The service is not ready before."""
        try:
            get_ready()
        except Exception as error:
            self.cold = f"the warm-up failed: {error}"
            raise
        self.cold = None


def versions() -> dict[str, str]:
    """Versions of the service and of the libraries that its numbers come from."""
    return {package: version(package) for package in ("bochner", "numpy", "scipy")}
