"""Group messages: store them and enqueue them for the pipeline that reads vacancies from them."""
