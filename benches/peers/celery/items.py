"""The tasks of the Celery chord. Nothing is to be done for an item."""

import os

from celery import Celery

url = f"redis://127.0.0.1:{os.environ['REDIS_PORT']}/0"
app = Celery("items", broker=url, backend=url)
app.conf.update(
    task_acks_late=False,
    worker_prefetch_multiplier=1_000,
    # The end needs the results in no particular order.
    result_chord_ordered=False,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
)


@app.task
def item(row):
    return 1


@app.task
def end(results):
    return len(results)
