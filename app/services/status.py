"""Whether the service is ready, and its versions."""

from collections.abc import Callable
from importlib.metadata import version

from app.services.warm_up import warm_up
from app.store.connection import Keeping
from app.store.errors import StoreUnavailable


class Status:
    """Readiness and versions.

    Args:
        ask_keeping: asks the store how it keeps what it is given.
        check_writable: raises StoreUnavailable unless the store takes a key.
        allow_volatile: whether a store that may lose or evict maps will do.
    """

    def __init__(
        self, ask_keeping: Callable[[], Keeping], check_writable: Callable[[], None], allow_volatile: bool
    ) -> None:
        self._ask_keeping = ask_keeping
        self._check_writable = check_writable
        self._allow_volatile = allow_volatile
        self._cold: str | None = "the warm-up has not ended yet"

    def keeping(self) -> Keeping:
        """How the store keeps what it is given; StoreUnavailable if it does not answer."""
        return self._ask_keeping()

    def unfit(self) -> str | None:
        """Why the store may lose maps that it has taken; None if it will not, or if the operator accepts that."""
        reason = self.keeping().unfit()
        if reason is None or self._allow_volatile:
            return None
        return f"{reason}; BOCHNER_ALLOW_VOLATILE_STORE=true accepts it"

    def not_ready(self) -> str | None:
        """Why requests should not come yet; None if the service is ready."""
        try:
            self._check_writable()
            return self.unfit() or self._cold
        except StoreUnavailable as error:
            return str(error)

    def warm_up(self) -> None:
        """Compile what is compiled at first use. The service is not ready before."""
        try:
            warm_up()
        except Exception as error:
            self._cold = f"the warm-up failed: {error}"
            raise
        self._cold = None


def versions() -> dict[str, str]:
    """Versions of the service and of the libraries that its numbers come from."""
    return {package: version(package) for package in ("bochner", "numpy", "scipy")}
