UPDATE holdfast_ticket SET until={now}+$L WHERE name=$N AND ticket=$T AND role=1
