//! Numbers as ECMAScript prints them, which RFC 8785 prescribes.

/// The shortest digits that give this double again, laid out by ECMA-262, 6.1.6.1.20.
pub(crate) fn ecmascript(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{:e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = mantissa.replace('.', "");
    let n_digits = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // The decimal point stands after so many digits.
    let point = exponent.parse::<i32>().unwrap_or_default() + 1;
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or_default());
    let body = if (n_digits..=21).contains(&point) {
        digits + &zeros(point - n_digits)
    } else if (1..=21).contains(&point) {
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or_default());
        format!("{whole}.{fraction}")
    } else if (-5..=0).contains(&point) {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let (sign, size) = if point > 0 {
            ('+', point - 1)
        } else {
            ('-', 1 - point)
        };
        match digits.split_at(1) {
            (first, "") => format!("{first}e{sign}{size}"),
            (first, rest) => format!("{first}.{rest}e{sign}{size}"),
        }
    };
    if value < 0.0 {
        format!("-{body}")
    } else {
        body
    }
}

#[cfg(test)]
mod tests {
    use super::ecmascript;

    #[test]
    fn numbers_are_what_a_browser_prints() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.5e-9, "1.5e-9"),
            (12_345_678_901_234_567_890.0, "12345678901234567000"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (333_333_333.333_333_3, "333333333.3333333"),
            (123.456, "123.456"),
        ] {
            assert_eq!(ecmascript(value), expected);
        }
    }
}
