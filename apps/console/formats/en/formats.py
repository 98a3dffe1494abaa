"""Formats of times, with seconds and time zone, so that operators can compare them with logs."""

DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i:s"
DATETIME_FORMAT = "Y-m-d H:i:s e"
SHORT_DATETIME_FORMAT = DATETIME_FORMAT
