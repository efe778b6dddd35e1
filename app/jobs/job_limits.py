"""What one job may take."""

from typing import NamedTuple

import psutil

from app.jobs.record import JobError


class JobLimits(NamedTuple):
    """What one job may take: seconds of running, and bytes of memory."""

    seconds: float
    nbytes: int

    def passed(self, taken: float, pid: int | None) -> JobError | None:
        """What a job takes too much of, if anything.

        Args:
            taken: seconds it ran, in all its attempts.
            pid: of its process.
        """
        if taken > self.seconds:
            detail = f"it ran for {taken:.0f} seconds; max_job_seconds is {self.seconds:g}"
            return JobError(reason="time", detail=detail)
        try:
            resident = psutil.Process(pid).memory_info().rss
        except psutil.Error:  # it ends just now
            return None
        if resident > self.nbytes:
            detail = f"it took {resident} bytes of memory; max_job_bytes is {self.nbytes}"
            return JobError(reason="memory", detail=detail)
        return None
