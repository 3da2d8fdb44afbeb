//! Points in time and durations.

use crate::value;

#[test]
fn the_moment_is_the_callers() {
    assert_eq!(value("datetime()"), "2026-01-02T03:04:05.006Z");
    assert_eq!(value("date() = date.statement()"), "true");
    assert_eq!(value("localtime()"), "03:04:05.006");
    assert_eq!(value("timestamp()"), "1767323045006");
    assert_eq!(
        value("datetime({timezone: '+02:00'})"),
        "2026-01-02T05:04:05.006+02:00"
    );
}

#[test]
fn fields_arithmetic_and_truncation() {
    for (expression, expected) in [
        ("date('2024-02-29') + duration('P1Y')", "2025-02-28"),
        ("date('2024-01-31') + duration({months: 1})", "2024-02-29"),
        ("date('2026-01-01').week", "1"),
        ("date('2027-01-01').weekYear", "2026"),
        (
            "localdatetime('2026-01-01T00:00') - duration({seconds: 1})",
            "2025-12-31T23:59:59",
        ),
        ("localtime('23:00') + duration({hours: 2})", "01:00"),
        ("duration('P1Y2M10DT2H30M') * 2", "P2Y4M20DT5H"),
        ("duration({days: 1}) / 2", "PT12H"),
        (
            "duration.between(date('2026-01-01'), date('2026-03-05'))",
            "P2M4D",
        ),
        (
            "duration.inDays(date('2026-01-01'), date('2026-03-05')).days",
            "63",
        ),
        ("date.truncate('quarter', date('2026-11-11'))", "2026-10-01"),
        (
            "datetime('2026-03-29T01:30[Europe/Berlin]') + duration({hours: 1})",
            "2026-03-29T03:30+02:00[Europe/Berlin]",
        ),
        (
            "datetime('2026-03-29T01:30[Europe/Berlin]') + duration({days: 1})",
            "2026-03-30T01:30+02:00[Europe/Berlin]",
        ),
        (
            "datetime('2026-01-01T12:00+01:00') < datetime('2026-01-01T12:00Z')",
            "true",
        ),
        ("date('-0044-03-15').year", "-44"),
        ("date('2026-01-01') = '2026-01-01'", "false"),
        ("duration('PT1H') < duration('PT2H')", "null"),
        ("toString(duration({seconds: 1.5}))", "'PT1.5S'"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn what_no_calendar_has_is_refused() {
    for expression in [
        "date('2023-02-29')",
        "date({year: 2026, week: 54})",
        "date({year: 2026, day: 3})",
        "time('25:00')",
        "datetime('2026-01-01T00:00[Nowhere/Here]')",
        "datetime('2026-01-01T00:00[../../etc/passwd]')",
        "date({year: 9999999999})",
        "duration('P')",
        "duration('1D')",
        "duration({months: 1e300})",
        "date('2026-01-01') + duration({days: 9223372036854775807})",
        "datetime({year: 2026, colour: 1})",
        "date.truncate('fortnight', date())",
        "datetime.fromepoch(9223372036854775807)",
        "date('2026-01-01').hour",
    ] {
        let error = crate::error(&format!("RETURN {expression} AS x"));
        assert!(!error.message().is_empty(), "{expression}");
    }
}
