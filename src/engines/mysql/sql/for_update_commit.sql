-- Of the caller, too. A deadlock or the caller may have ended the transaction, and
-- the lock: after the first statement we know.
DO 1;
COMMIT AND CHAIN;
SET innodb_lock_wait_timeout=3600
