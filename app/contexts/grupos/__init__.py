"""Messages from WhatsApp and Telegram groups. They are stored and enqueued for the pipeline that finds vacancies in
them.
"""
