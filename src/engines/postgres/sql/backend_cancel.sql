-- End what a backend of ours does.
SELECT pg_cancel_backend(pid) FROM {backend}
