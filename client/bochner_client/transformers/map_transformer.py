"""Base class of the transformers: `fit` creates a map in the service, and `transform` sends rows to it."""

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from bochner_client.errors import BochnerError, NotModified
from bochner_client.refusals import MapNotFound, MapNotReady
from bochner_client.transformers.bars import rows_bar
from bochner_client.transformers.blocks import cuts, for_each
from bochner_client.transformers.connections import Connection, connection
from bochner_client.transformers.fitting import as_dataset, put, with_numbers
from bochner_client.transformers.rows import Block, Rows
from bochner_client.transformers.specs import (
    Spec,
    input_of,
    is_of_rows,
    is_open,
    learns,
    least_rows,
    named,
    named_rows,
    of_dataset,
)

Array = NDArray[Any]


class MapChanged(BochnerError):
    """A map that had expired was built again, and differs from the map that was fitted."""


class MapTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer that uses a map of a service.

    A fitted transformer has all that is needed to build the map again, in this process or elsewhere.

    Attributes:
        name_: name of the map.
        spec_: spec of the map, in which all fields that depended on rows are numbers.
        digest_: digest of the map.
        report_: report on the learned set of the map; None if no set was learned.
        rows_: rows that the sampler has learned from, to build the map again; None if it does not learn from those of
            `fit`.
        n_features_in_: number of columns of a row.
        feature_names_in_: names of the columns, if `fit` was called with a data frame.
    """

    input: Any
    url: str | None
    key: str | None
    name: str | None
    ttl: int | None
    at_once: int
    progress: bool

    @abstractmethod
    def _asked(self, service: Connection) -> Spec:
        """Return the requested spec, without `input_dim` and `input`."""

    @abstractmethod
    def _post(self, service: Connection, rows: Block, out: Array | None) -> Array:
        """Return the answer for some rows, written into `out` if it is given."""

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any], **arguments: Any) -> Self:
        """Return a transformer for the spec of a map, such as the `best` of a recommendation.

        What that map has learned from a dataset, its landmarks too, the transformer learns from the rows of `fit`.

        Args:
            spec: spec of a map, as in its record.
            arguments: further arguments of the transformer; they override those of the spec.
        """
        of_fit = {part: {**spec[part]} for part in ("sampler", "input") if spec.get(part) is not None}
        for part in of_fit.values():
            part.pop("dataset", None)
        of_fit["sampler"].pop("rows", None)
        return cls._of({**spec, **of_fit}, arguments)

    @classmethod
    def from_map(cls, name: str, *, url: str | None = None, key: str | None = None, **arguments: Any) -> Self:
        """Return a transformer that uses a map that exists, as it is; `fit` only checks the rows.

        Args:
            name: name of the map.
            url: address of the service, as for a transformer.
            key: key for the service.
            arguments: further arguments of the transformer, but for those that the spec of the map has.

        Raises:
            MapNotFound: there is no such map.
        """
        spec = connection(url, key).client.get_map(name).spec
        return cls._of(spec, {"name": name, "url": url, "key": key, **arguments})

    @classmethod
    def _of(cls, spec: Mapping[str, Any], arguments: Mapping[str, Any]) -> Self:
        known = {name: value for name, value in spec.items() if name in cls._get_param_names()}
        return cls(**({"s": None} | known | {**arguments}))

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Make the service build the map, unless it exists. Rows are sent only if the map is made from them.

        Args:
            X: rows (n, d): NumPy, SciPy sparse, pandas, polars, Arrow, a tensor, or lists.
            y: not used.

        Returns:
            The fitted transformer.
        """
        del y
        rows, service = self._rows(X, reset=True), connection(self.url, self.key)
        spec = {"input_dim": rows.d, **self._asked(service)}
        if self.input is not None:
            spec["input"] = input_of(self.input)
        least = least_rows(spec)
        if rows.n < least:
            check_array(rows.block(0, rows.n), accept_sparse="csr", ensure_min_samples=least)
        sent, learned = self._sent(rows, spec, service), learns(spec)
        if sent is not None:
            spec = of_dataset(spec, named_rows(sent))
        if is_open(spec):
            spec = with_numbers(service, spec, sent, self.ttl)
        self.rows_ = sent if learned else None
        self.spec_ = spec
        self.name_ = self.name or named(spec)
        record = put(service, self.name_, spec, self.rows_, self._lifetime(service), self.progress)
        self.digest_, self.report_ = record.digest, record.report
        empty = self._post(service, np.empty((0, rows.d), np.float32), None)
        self._row = empty.shape[1:], empty.dtype
        self._n_features_out = self._columns()
        return self

    def transform(self, X: Any, out: Array | None = None) -> Any:  # noqa: N803
        """Return what the map computes for rows, which are sent block by block, several at a time.

        Args:
            X: any number of rows (n, n_features_in_), of the kinds that `fit` accepts.
            out: array to write into and return, such as a memory map, which may be larger than memory; None for a new
                array.
        """
        check_is_fitted(self)
        rows, service = self._rows(X, reset=False), connection(self.url, self.key)
        self._see_to_map(service)
        target = self._target(rows.n, out)

        def work(start: int, stop: int) -> None:
            block, place = rows.block(start, stop), target[start:stop]
            try:
                self._post(service, block, place)
            except (MapNotFound, MapNotReady):  # the map has expired meanwhile
                self._see_to_map(service)
                self._post(service, block, place)

        answered = target.dtype.itemsize * prod(target.shape[1:])
        with rows_bar(rows.n, self.progress) as done:
            for_each(work, cuts(rows, answered, service.limits), self.at_once, done)
        return self._given(target) if out is None else out

    def _lifetime(self, service: Connection) -> int | None:
        """Return `ttl`, or the longer lifetime of a map that exists under the name that was given."""
        if self.name is not None and self.ttl is not None:
            with suppress(MapNotFound):
                there = service.client.get_map(self.name).ttl
                return there and max(there, self.ttl)
        return self.ttl

    def _columns(self) -> int:
        """Return the number of columns of a transformed row."""
        return prod(self._row[0])

    def _given(self, target: Array) -> Any:
        """Return the result of `transform`, given the answers in an array that `transform` has made."""
        return target.reshape(len(target), self._columns())

    def _rows(self, x: Any, reset: bool) -> Rows:
        rows = Rows(x, self._takes_missing())
        first = rows.block(0, min(1, rows.n)) if rows.named is None else rows.named
        validate_data(self, first, reset=reset, skip_check_array=True)
        if reset and not rows.n:
            check_array(first)  # raises the error of scikit-learn
        return rows

    def _sent(self, rows: Rows, spec: Spec, service: Connection) -> Block | None:
        """Return the rows that the map is made from; None if it depends on no rows. All rows are checked either way."""
        if is_of_rows(spec):
            return as_dataset(rows, service.limits)
        for _ in rows.blocks():
            pass
        return None

    def _see_to_map(self, service: Connection) -> None:
        """Make the service build the map again if it has expired.

        Raises:
            MapExists: the name is now taken by another map.
            MapChanged: the service builds a map from this spec that differs from the fitted one.
        """
        with suppress(NotModified):
            with suppress(MapNotFound):
                service.client.get_map(self.name_, if_none_match=self.digest_)
            made = put(service, self.name_, self.spec_, self.rows_, self.ttl, self.progress)
            if made.digest != self.digest_:
                raise MapChanged(
                    f"map {self.name_!r} has digest {made.digest} now; {self.digest_} was fitted. Fit again: the "
                    f"service draws this map with {made.generator}"
                )

    def _target(self, n: int, out: Array | None) -> Array:
        shape, dtype = self._row
        if out is None:
            return np.empty((n, *shape), dtype)
        if not (
            isinstance(out, np.ndarray) and out.shape == (n, *shape) and np.can_cast(dtype, out.dtype, "same_kind")
        ):
            came = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
            raise ValueError(f"out is {came}; an array of {dtype} {(n, *shape)} is wanted")
        return out

    def _takes_missing(self) -> bool:
        return isinstance(self.input, Mapping) and self.input.get("missing", "refuse") != "refuse"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_missing()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # noqa: N803
        text: str = super().__repr__(N_CHAR_MAX)
        return text.replace(repr(self.key), _HIDDEN) if self.key else text

    def _get_params_html(self, *args: Any, **options: Any) -> Any:
        shown = super()._get_params_html(*args, **options)
        if self.key:
            shown["key"] = _HIDDEN
        return shown


_HIDDEN = "'…'"
