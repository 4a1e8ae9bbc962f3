{leave_condition:1=1}
