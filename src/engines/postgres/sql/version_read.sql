SELECT version FROM holdfast_version WHERE name = $1
