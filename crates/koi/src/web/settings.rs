//! The operator's settings for the web, in environment variables.

use kenning_core::{Error, Result};
use kenning_egress::Grant;
use std::time::Duration;

/// Addresses that may be fetched although they are not of the public internet.
pub(super) const ALLOW: &str = "KENNING_WEB_ALLOW";
/// Previews an hour, of everybody together.
const HOURLY: &str = "KENNING_WEB_PREVIEWS_PER_HOUR";
/// Previews an hour, of one submitter.
const HOURLY_EACH: &str = "KENNING_WEB_PREVIEWS_PER_HOUR_EACH";
/// Seconds between two looks at a monitored page.
const INTERVAL: &str = "WEB_SENSOR_INTERVAL";
/// Whether pages are monitored.
const SENSOR: &str = "WEB_SENSOR_ENABLED";
/// Whether pages are processed.
const ENRICHMENT: &str = "LLM_ENRICHMENT_ENABLED";

const INTERVAL_DEFAULT: u64 = 86_400;

/// The operator's settings for the web.
#[derive(Clone, Debug)]
pub(crate) struct WebSettings {
    pub(super) grants: Vec<Grant>,
    /// 0 is no limit.
    pub(super) previews_hourly: u64,
    pub(super) previews_hourly_each: u64,
    pub(super) interval: Duration,
    pub(super) is_monitoring: bool,
    pub(super) is_enriching: bool,
}

impl WebSettings {
    pub(super) fn of(lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let text = |name: &str| {
            let text = lookup(name).map(|it| it.trim().to_owned());
            text.filter(|it| !it.is_empty())
        };
        let number = |name: &str, default: u64| match text(name) {
            None => Ok(default),
            Some(it) => it.parse::<u64>().map_err(|_| {
                Error::invalid(format!("{name}: `{it}` is not a number"))
                    .hint(format!("write for example {name}={default}"))
            }),
        };
        let flag = |name: &str| match text(name).map(|it| it.to_ascii_lowercase()).as_deref() {
            None | Some("true" | "1" | "yes" | "on") => Ok(true),
            Some("false" | "0" | "no" | "off") => Ok(false),
            Some(it) => Err(
                Error::invalid(format!("{name}: `{it}` is not true or false"))
                    .hint(format!("write {name}=true or {name}=false")),
            ),
        };
        let allowed = text(ALLOW).unwrap_or_default();
        let allowed = allowed
            .split(',')
            .map(str::trim)
            .filter(|it| !it.is_empty());
        let grants = allowed.map(|it| {
            Grant::parse(it).map_err(|error| {
                Error::invalid(format!("{ALLOW}: {}", error.message))
                    .hint(error.hint.clone().unwrap_or_default())
                    .because(error)
            })
        });
        Ok(Self {
            grants: grants.collect::<Result<_>>()?,
            previews_hourly: number(HOURLY, 20)?,
            previews_hourly_each: number(HOURLY_EACH, 5)?,
            interval: Duration::from_secs(number(INTERVAL, INTERVAL_DEFAULT)?.max(1)),
            is_monitoring: flag(SENSOR)?,
            is_enriching: flag(ENRICHMENT)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<WebSettings> {
        let found = |name: &str| {
            let pair = pairs.iter().find(|it| it.0 == name);
            pair.map(|it| it.1.to_owned())
        };
        WebSettings::of(&found)
    }

    #[test]
    fn nothing_said_is_the_default() {
        let it = read(&[(ALLOW, " "), (INTERVAL, "")]).unwrap();
        let limits = (it.previews_hourly, it.previews_hourly_each);
        assert_eq!((limits, it.interval.as_secs()), ((20, 5), 86_400));
        assert!(it.is_monitoring && it.is_enriching && it.grants.is_empty());
    }

    #[test]
    fn a_setting_that_cannot_be_read_says_which() {
        for (name, value) in [
            (ALLOW, "http://127.0.0.1:1, a b"),
            (HOURLY, "many"),
            (SENSOR, "perhaps"),
            (INTERVAL, "-1"),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(error.message.contains(name), "{error}");
        }
    }
}
