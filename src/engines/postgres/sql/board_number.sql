INSERT INTO holdfast_wait VALUES ('#', 'infinity', $1) ON CONFLICT (client) DO NOTHING
