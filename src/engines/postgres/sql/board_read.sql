SELECT client, notice FROM holdfast_wait WHERE until >= clock_timestamp() ORDER BY client LIMIT 300
