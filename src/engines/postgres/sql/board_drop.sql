DELETE FROM holdfast_wait WHERE client = $1 OR until < clock_timestamp()
