-- End it, and wait until it has gone.
SELECT pg_terminate_backend(pid, 2000) FROM {backend}
