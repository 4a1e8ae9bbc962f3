-- It waits for a transaction of another's for a while, and not for ever.
{set}
SET lock_timeout = 2000;
{with:true | true}
