"""Features of rows from kernel values with landmarks."""

import numpy as np

from app.core.arrays import Floats, Rows, row_blocks
from app.core.kernels.base import AnyKernel
from app.core.progress import Pause
from app.core.threads import for_each

_VALUES_PER_BLOCK = 1 << 18


class LandmarkFeatures:
    """Makes k(x, L)·root of rows x."""

    def __init__(
        self, kernel: AnyKernel, landmarks: Rows, root: Floats, dtype: np.dtype[np.floating], threads: int
    ) -> None:
        self._kernel, self._landmarks, self._root = kernel, landmarks, root.astype(np.float64)
        self._dtype, self._threads = dtype, threads
        self.nbytes = self._root.nbytes

    def operations(self, rows: Rows) -> int:
        """Multiplications that the rows take."""
        s, r = self._root.shape
        return self._kernel.exact_operations(rows, self._landmarks) + int(rows.shape[0] * s * r)

    def of(self, rows: Rows, pause: Pause) -> Floats:
        """The features of prepared rows, (n, r)."""
        n = int(rows.shape[0])
        features: Floats = np.empty((n, self._root.shape[1]), self._dtype)

        def fill(part: slice) -> None:
            for i in range(part.start, part.stop):  # row by row, so that no bit hangs on the others
                features[i] = self._kernel.exact(rows[i : i + 1], self._landmarks)[0] @ self._root

        for_each(fill, row_blocks(n, _VALUES_PER_BLOCK // len(self._root)), self._threads, pause)
        return features
