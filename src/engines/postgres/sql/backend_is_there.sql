SELECT 1 FROM {backend}
