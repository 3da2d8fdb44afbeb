//! Numbers with bounds, so that the JSON Schema and the check always agree.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::borrow::Cow;

/// A number between 0 and 1, both included.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
pub struct Unit(f64);

impl Unit {
    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }

    /// Moves toward `target` by `rate`, both between 0 and 1; the result stays between them.
    #[must_use]
    pub fn lerp(self, target: f64, rate: f64) -> Self {
        Self((self.0 + (target - self.0) * rate).clamp(0.0, 1.0))
    }
}

impl TryFrom<f64> for Unit {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        if !(0.0..=1.0).contains(&value) {
            return Err(format!("`{value}` is not between 0 and 1"));
        }
        Ok(Self(value))
    }
}

impl<'de> Deserialize<'de> for Unit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(f64::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl JsonSchema for Unit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Unit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 1 })
    }
}

/// A whole number between `MIN` and `MAX`, both included. Anything else is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Bounded<const MIN: i64, const MAX: i64>(i64);

impl<const MIN: i64, const MAX: i64> Bounded<MIN, MAX> {
    /// The number.
    pub fn get(self) -> i64 {
        self.0
    }
}

impl<const MIN: i64, const MAX: i64> TryFrom<i64> for Bounded<MIN, MAX> {
    type Error = String;

    fn try_from(value: i64) -> Result<Self, String> {
        if !(MIN..=MAX).contains(&value) {
            return Err(format!("`{value}` is not between {MIN} and {MAX}"));
        }
        Ok(Self(value))
    }
}

impl<'de, const MIN: i64, const MAX: i64> Deserialize<'de> for Bounded<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(i64::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl<const MIN: i64, const MAX: i64> JsonSchema for Bounded<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Bounded_{MIN}_{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

/// How many results to return: `DEFAULT` when absent; a number outside `1..=MAX` is moved to the
/// nearest end, because the contracts that use it say "clamp".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limit<const DEFAULT: u32, const MAX: u32>(u32);

impl<const DEFAULT: u32, const MAX: u32> Limit<DEFAULT, MAX> {
    /// The number of results.
    pub fn get(self) -> usize {
        self.0 as usize
    }
}

impl<const DEFAULT: u32, const MAX: u32> Default for Limit<DEFAULT, MAX> {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl<'de, const DEFAULT: u32, const MAX: u32> Deserialize<'de> for Limit<DEFAULT, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = i64::deserialize(deserializer)?.clamp(1, i64::from(MAX));
        Ok(Self(u32::try_from(value).unwrap_or(MAX)))
    }
}

impl<const DEFAULT: u32, const MAX: u32> JsonSchema for Limit<DEFAULT, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Limit_{DEFAULT}_{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": MAX, "default": DEFAULT })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether the schema allows a value.
    fn schema_allows<T: JsonSchema>(value: f64) -> bool {
        let schema = SchemaGenerator::default().into_root_schema_for::<T>();
        let bound = |name: &str| {
            schema
                .get(name)
                .and_then(serde_json::Value::as_f64)
                .unwrap()
        };
        (bound("minimum")..=bound("maximum")).contains(&value)
    }

    proptest! {
        #[test]
        fn a_unit_checks_what_its_schema_prints(value in -2.0f64..3.0) {
            let parsed = serde_json::from_value::<Unit>(value.into());
            prop_assert_eq!(parsed.is_ok(), schema_allows::<Unit>(value));
        }

        #[test]
        fn a_bounded_number_checks_what_its_schema_prints(value in -50i64..50) {
            let parsed = serde_json::from_value::<Bounded<-7, 20>>(value.into());
            prop_assert_eq!(parsed.is_ok(), schema_allows::<Bounded<-7, 20>>(value as f64));
        }

        #[test]
        fn a_limit_is_clamped_into_what_its_schema_prints(value: i64) {
            let parsed = serde_json::from_value::<Limit<10, 100>>(value.into()).unwrap();
            prop_assert!(schema_allows::<Limit<10, 100>>(parsed.get() as f64));
        }
    }

    #[test]
    fn a_refusal_names_the_value_and_the_bounds() {
        let error = serde_json::from_str::<Unit>("1.5").unwrap_err().to_string();
        assert!(error.contains("`1.5` is not between 0 and 1"), "{error}");
        assert!(serde_json::from_str::<Unit>("null").is_err());
        assert!(Unit::try_from(f64::NAN).is_err());
    }
}
