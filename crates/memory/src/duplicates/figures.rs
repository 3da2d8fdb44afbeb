//! Figures in a text: numbers with their units, versions, dates, comparisons.

/// A figure and its unit, which may be empty.
type Figure = (String, &'static str);

/// Units and their spellings. Capital letters matter: a bit is not a byte.
const UNITS: &[(&str, &[&str])] = &[
    ("ns", &["ns", "nanosecond", "nanoseconds"]),
    ("us", &["us", "µs", "μs", "microsecond", "microseconds"]),
    ("ms", &["ms", "msec", "millisecond", "milliseconds"]),
    ("s", &["s", "sec", "secs", "second", "seconds"]),
    ("min", &["min", "mins", "minute", "minutes"]),
    ("h", &["h", "hr", "hrs", "hour", "hours"]),
    ("day", &["d", "day", "days"]),
    ("week", &["week", "weeks"]),
    ("month", &["month", "months"]),
    ("year", &["year", "years"]),
    ("byte", &["B", "byte", "bytes"]),
    ("bit", &["bit", "bits"]),
    ("kB", &["kB", "KB", "kilobyte", "kilobytes"]),
    ("MB", &["MB", "megabyte", "megabytes"]),
    ("GB", &["GB", "gigabyte", "gigabytes"]),
    ("TB", &["TB", "terabyte", "terabytes"]),
    ("kbit", &["kb", "Kb", "kbit", "kbps"]),
    ("Mbit", &["Mb", "Mbit", "Mbps"]),
    ("Gbit", &["Gb", "Gbit", "Gbps"]),
    ("KiB", &["KiB"]),
    ("MiB", &["MiB"]),
    ("GiB", &["GiB"]),
    ("TiB", &["TiB"]),
    ("Hz", &["hz"]),
    ("kHz", &["khz"]),
    ("MHz", &["mhz"]),
    ("GHz", &["ghz"]),
    ("mm", &["mm", "millimeter", "millimeters"]),
    ("cm", &["cm", "centimeter", "centimeters"]),
    ("m", &["m", "meter", "meters"]),
    ("km", &["km", "kilometer", "kilometers"]),
    ("inch", &["inch", "inches"]),
    ("foot", &["ft", "foot", "feet"]),
    ("mile", &["mi", "mile", "miles"]),
    ("mg", &["mg"]),
    ("g", &["g", "gram", "grams"]),
    ("kg", &["kg", "kilogram", "kilograms"]),
    ("lb", &["lb", "lbs", "pound", "pounds"]),
    ("%", &["%", "percent"]),
    ("°C", &["°C", "celsius"]),
    ("°F", &["°F", "fahrenheit"]),
    ("K", &["kelvin"]),
    ("$", &["$", "usd", "dollar", "dollars"]),
    ("€", &["€", "eur", "euro", "euros"]),
    ("£", &["£", "gbp"]),
    ("¥", &["¥", "jpy", "yen"]),
    ("token", &["token", "tokens"]),
];

/// Numbers in words. `one` is left out: it is more often a pronoun.
const NUMBERS: &[(&str, &str)] = &[
    ("zero", "0"),
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("ten", "10"),
    ("eleven", "11"),
    ("twelve", "12"),
    ("twenty", "20"),
    ("thirty", "30"),
    ("hundred", "100"),
    ("thousand", "1000"),
    ("million", "1000000"),
    ("billion", "1000000000"),
    ("twice", "twice"),
    ("half", "half"),
    ("double", "double"),
    ("first", "1st"),
    ("second", "2nd"),
    ("third", "3rd"),
    ("fourth", "4th"),
    ("fifth", "5th"),
    ("last", "last"),
    ("today", "today"),
    ("yesterday", "yesterday"),
    ("tomorrow", "tomorrow"),
];

/// Months and days of the week by their first three letters, when written with a capital.
const CALENDAR: &[&str] = &[
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// Every figure of a text, in order: "from 5 to 10" is not "from 10 to 5".
pub(super) fn of(text: &str) -> Vec<Figure> {
    // Typographic dashes and minus signs count as `-`.
    let text = text
        .replace(['\u{2212}', '\u{2013}'], "-")
        .replace('\u{2014}', " ");
    let mut chunks = text.split(' ').map(trimmed).peekable();
    let mut figures = Vec::new();
    while let Some(chunk) = chunks.next() {
        let Some((number, unit)) = figure(chunk) else {
            continue;
        };
        let next = chunks.peek().and_then(|it| unit_of(it));
        if let ("", Some(next)) = (unit, next) {
            chunks.next();
            figures.push((number, next));
        } else {
            figures.push((number, unit));
        }
    }
    figures
}

/// Without the punctuation around it.
fn trimmed(chunk: &str) -> &str {
    let outer = |c: char| ",.;:!?()[]{}\"'`*“”‘’«»。、，".contains(c);
    chunk.trim_matches(outer)
}

/// The figure in a word, if it is one.
fn figure(chunk: &str) -> Option<Figure> {
    if !chunk.is_empty() && chunk.chars().all(|c| "<>=≤≥≠!".contains(c)) {
        return Some((chunk.to_owned(), ""));
    }
    if chunk.contains(char::is_numeric) {
        return Some(number(chunk));
    }
    let lower = chunk.to_lowercase();
    let calendar = CALENDAR.iter().find(|name| {
        let short = chunk.trim_end_matches('.');
        **name == chunk || name.get(..3) == Some(short) && short != "May"
    });
    if let Some(name) = calendar {
        return Some(((*name).to_owned(), ""));
    }
    let (_, value) = NUMBERS.iter().find(|(word, _)| *word == lower)?;
    Some(((*value).to_owned(), ""))
}

/// `$1,000`, `30ms`, `v2.1`, `2024-01-15` or `a1b2c3`.
fn number(chunk: &str) -> Figure {
    let currency = chunk.chars().next().filter(|c| "$€£¥".contains(*c));
    let rest = currency.map_or(chunk, |c| &chunk[c.len_utf8()..]);
    let rest = match rest.strip_prefix(['v', 'V']) {
        Some(version) if version.starts_with(char::is_numeric) => version,
        _ => rest,
    };
    let digits_end = rest.rfind(|c: char| c.is_numeric()).map_or(0, |at| {
        at + rest[at..].chars().next().map_or(0, char::len_utf8)
    });
    let (digits, suffix) = rest.split_at(digits_end);
    let unit = match (currency, unit_of(suffix)) {
        (Some(c), _) => unit_of(c.encode_utf8(&mut [0; 4])),
        (None, unit) => unit,
    };
    match unit {
        Some(unit) => (plain(digits), unit),
        // Not a unit, so part of the figure: `3rd`, `2.0-rc1`, `0x1f`.
        None => (plain(&rest.to_lowercase()), ""),
    }
}

/// Without the commas between thousands.
fn plain(digits: &str) -> String {
    digits.replace(',', "")
}

/// As written, otherwise in lower case.
fn unit_of(word: &str) -> Option<&'static str> {
    let find = |word: &str| {
        let mut rows = UNITS.iter();
        rows.find(|(_, spellings)| spellings.contains(&word))
            .map(|(unit, _)| *unit)
    };
    find(word).or_else(|| find(&word.to_lowercase()).filter(|_| word.chars().count() > 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_with_their_units() {
        for (text, expected) in [
            ("no figures here, one would think", &[][..]),
            (
                "30 s, 30s and 30 Seconds.",
                &[("30", "s"), ("30", "s"), ("30", "s")],
            ),
            ("(10MB) or 10 Mb", &[("10", "MB"), ("10", "Mbit")]),
            ("$1,000.50 and 5 €", &[("1000.50", "$"), ("5", "€")]),
            ("v2.1 of 2024-01-15", &[("2.1", ""), ("2024-01-15", "")]),
            ("-5 or 5–10", &[("-5", ""), ("5-10", "")]),
            ("the second of two seconds", &[("2nd", ""), ("2", "s")]),
            ("x <= 5", &[("<=", ""), ("5", "")]),
            (
                "in May it may rain, Sat. too",
                &[("May", ""), ("Saturday", "")],
            ),
        ] {
            let got = of(text);
            let got: Vec<_> = got.iter().map(|(it, unit)| (it.as_str(), *unit)).collect();
            assert_eq!(got, expected, "{text}");
        }
    }
}
