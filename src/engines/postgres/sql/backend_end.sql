-- End a backend that we lost. No row: it has gone.
SELECT pg_terminate_backend(pid) FROM {backend}
