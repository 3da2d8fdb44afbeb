//! Versions: three numbers, but not 0.0.0.

use crate::Faults;

/// The version of an item that declares none, where none is required.
pub const DEFAULT: &str = "1.0.0";
const REMEDY: &str = "use three numbers such as `1.0.0`";

/// Adds a fault unless this is a semantic version.
pub(crate) fn check(faults: &mut Faults, version: &str) {
    match semver::Version::parse(version) {
        Err(_) => faults.add(
            "version",
            format!("`{version}` is not a semantic version"),
            REMEDY,
        ),
        Ok(_) if version == "0.0.0" => {
            faults.add(
                "version",
                "`0.0.0` means no version",
                "begin with `0.0.1` or `1.0.0`",
            );
        }
        Ok(_) => {}
    }
}

/// The same, with nothing after the three numbers.
pub(crate) fn check_plain(faults: &mut Faults, version: &str) {
    let n_before = faults.0.len();
    check(faults, version);
    if faults.0.len() == n_before && version.contains(['-', '+']) {
        let message = format!("`{version}` has more than three numbers");
        faults.add("version", message, REMEDY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_are_a_version() {
        for (version, is_semver, is_plain) in [
            ("1.0.0", true, true),
            ("10.20.30", true, true),
            ("1.0.0-beta.1", true, false),
            ("1.0.0+x", true, false),
            ("0.0.0", false, false),
            ("1.0", false, false),
            ("v1.0.0", false, false),
            ("01.0.0", false, false),
            ("", false, false),
        ] {
            for (check, good) in [
                (check as fn(&mut Faults, &str), is_semver),
                (check_plain, is_plain),
            ] {
                let mut faults = Faults::default();
                check(&mut faults, version);
                assert_eq!(faults.0.is_empty(), good, "{version}");
            }
        }
    }
}
