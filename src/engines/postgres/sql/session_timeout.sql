-- How long a session may be silent.
SELECT set_config('idle_session_timeout', $1, false),
set_config('idle_in_transaction_session_timeout', $1, false)
