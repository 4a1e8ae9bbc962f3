ROLLBACK AND CHAIN;
SET innodb_lock_wait_timeout=3600
