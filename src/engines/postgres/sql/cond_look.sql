-- Was it called? No row: it is not parked, and bears no wake-up.
SELECT called, {timeline} FROM holdfast_cond WHERE {me}
