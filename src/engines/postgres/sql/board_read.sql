SELECT client, notice FROM holdfast_wait WHERE client > '' AND until >= clock_timestamp()
ORDER BY client LIMIT 300
