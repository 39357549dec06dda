//! A moment as a date.

/// Nanoseconds since 1970 as `2026-11-16 13:34:44`, in UTC.
pub(super) fn date(nanos: u64) -> String {
    let seconds = nanos / 1_000_000_000;
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let (mut day, mut year) = (seconds / 86_400, 1970);
    while day >= days_of(year) {
        day -= days_of(year);
        year += 1;
    }
    let february = days_of(year) - 337;
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= months[month] {
        day -= months[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02} {hour:02}:{minute:02}:{second:02}", month + 1, day + 1)
}

fn days_of(year: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    if is_leap { 366 } else { 365 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01 00:00:00"),
            (951_826_154, "2000-02-29 12:09:14"),
            (1_794_836_062, "2026-11-16 13:34:22"),
            (1_767_225_599, "2025-12-31 23:59:59"),
        ];
        for (seconds, text) in cases {
            assert_eq!(date(seconds * 1_000_000_000), text);
        }
    }
}
