"""Jobs: long-running work in separate processes; a job survives the death of any process."""
