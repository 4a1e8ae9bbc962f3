-- A holder uses its wake-up up; who has lost the lock passes it on.
{leave_condition:@hf_ticket<>$T}
