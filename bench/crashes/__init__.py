"""What happens to accepted jobs if workers or the server crash: Batuta beside other task queues, in real processes."""
