UPDATE holdfast_lock SET until={now}+$L WHERE name=$N AND token=$K AND until>0
