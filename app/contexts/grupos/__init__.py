"""What is said in groups, kept for the pipeline that reads vacancies out of it."""
