"""Group messages: stored and queued for the pipeline that reads vacancies from them."""
