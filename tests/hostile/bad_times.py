"""Events with a wrong time: no RFC 3339, no zone, or outside of the years 1 to 9999 of UTC."""

from collections.abc import Callable

from hostile.draw import Draw, Spoiled


def time_spoiled(draw: Draw, bad: object) -> Spoiled:
    if draw.likely(0.6):
        return draw.envelope(time=bad), "time"
    return draw.with_data(started=bad), "data.started"


def clock(draw: Draw) -> str:
    return f"{draw.between(0, 23):02}:{draw.between(0, 59):02}:{draw.between(0, 59):02}"


def leap_second(draw: Draw) -> Spoiled:
    return time_spoiled(
        draw,
        draw.one(
            *("2016-12-31T23:59:60Z", "2015-06-30T23:59:60.5Z", "2017-01-01T00:59:60+01:00"),
            f"20{draw.between(10, 24)}-06-30T{clock(draw)[:5]}:{draw.between(60, 99)}Z",
        ),
    )


def time_without_a_zone(draw: Draw) -> Spoiled:
    day = f"20{draw.between(10, 24)}-05-{draw.between(1, 28):02}"
    return time_spoiled(draw, draw.one(day, f"{day}T{clock(draw)}", f"{day}T{clock(draw)}.5"))


def time_before_year_1(draw: Draw) -> Spoiled:
    """Outside of what a datetime holds once it is in UTC, or in the year zero."""
    ahead = f"+{draw.between(1, 23):02}:{draw.between(0, 59):02}"
    return time_spoiled(
        draw, draw.one(f"0001-01-01T00:{draw.between(0, 59):02}:00{ahead}", f"0000-12-31T{clock(draw)}Z")
    )


def time_after_year_9999(draw: Draw) -> Spoiled:
    behind = f"-{draw.between(1, 23):02}:{draw.between(0, 59):02}"
    return time_spoiled(
        draw,
        draw.one(
            f"9999-12-31T23:{draw.between(0, 59):02}:59{behind}",
            f"{draw.between(10_000, 99_999)}-01-01T{clock(draw)}Z",
            f"+0{draw.between(10_000, 99_999)}-01-01T{clock(draw)}Z",
        ),
    )


def impossible_date(draw: Draw) -> Spoiled:
    year = f"20{draw.between(10, 24)}"
    return time_spoiled(
        draw,
        draw.one(
            *(f"{year}-02-30T{clock(draw)}Z", f"{year}-04-31T{clock(draw)}Z", f"2023-02-29T{clock(draw)}Z"),
            *(f"{year}-00-10T{clock(draw)}Z", f"{year}-{draw.between(13, 99)}-10T{clock(draw)}Z"),
            *(f"{year}-05-00T{clock(draw)}Z", f"{year}-05-{draw.between(32, 99)}T{clock(draw)}Z"),
            *(f"{year}-05-01T24:00:00Z", f"{year}-05-01T{draw.between(24, 99)}:00:00Z"),
            *(
                f"{year}-05-01T10:{draw.between(60, 99)}:00Z",
                f"{year}-05-01T10:00:00+{draw.between(24, 99)}:00",
            ),
            f"{year}-05-01T10:00:00+00:{draw.between(60, 99)}",
        ),
    )


def time_in_another_form(draw: Draw) -> Spoiled:
    day, time = f"20{draw.between(10, 24)}-05-{draw.between(10, 28)}", clock(draw)
    return time_spoiled(
        draw,
        draw.one(
            *(f"{day} {time}Z", f"{day}T{time} Z", f" {day}T{time}Z", f"{day}T{time}Z\n", f"{day}T{time},5Z"),
            *(f"{day}T{time}.Z", f"{day}T{time}.1234567890Z", f"{day}T{time}+0100", f"{day}T{time}UTC"),
            *(f"{day}T{time}+01:00:00", f"{day}T{time[:5]}Z", f"{day.replace('-', '')}T{time}Z", "now", ""),
            *("2024-W05-1T10:00:00Z", "Fri, 10 May 2024 10:00:00 GMT", "10/05/2024", f"-{day}T{time}Z"),
            *("\u0662\u0660\u0662\u0664-05-10T10:00:00Z", f"{day}T{time}Z" + "0" * draw.size(1, 500)),
        ),
    )


def time_that_is_no_text(draw: Draw) -> Spoiled:
    bad = draw.one(1_700_000_000, 1.7e9, True, False, [], {}, ["2024-05-10T10:00:00Z"], {"$date": 0})
    return time_spoiled(draw, bad)


def time_missing(draw: Draw) -> Spoiled:
    event = draw.envelope(comment=draw.number)
    if draw.likely(0.5):
        del event["time"]
    else:
        event["time"] = None
    return event, "time"


BAD_TIMES: tuple[Callable[[Draw], Spoiled], ...] = (
    *(leap_second, time_without_a_zone, time_before_year_1, time_after_year_9999, impossible_date),
    *(time_in_another_form, time_that_is_no_text, time_missing),
)
"""Every class of them; the reason is `bad_field:` and the path."""
