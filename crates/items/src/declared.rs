//! Compares what a file says about itself with its path.

use crate::kind::{Category, Place, shown};
use crate::{Faults, yaml};
use serde_json::{Map, Value};

/// The field `category`, or the folders above the file. If both exist, they must agree.
pub(crate) fn declared_category(
    faults: &mut Faults,
    fields: &Map<String, Value>,
    place: &Place,
) -> String {
    agreed_category(faults, yaml::text_at(fields, &["category"]), place)
}

pub(crate) fn agreed_category(
    faults: &mut Faults,
    declared: Option<String>,
    place: &Place,
) -> String {
    let Some(declared) = declared else {
        return place.category.as_str().to_owned();
    };
    if let Err(error) = declared.parse::<Category>() {
        let message = format!("`{}` is not a category", shown(&declared));
        faults.add("category", message, error.hint.unwrap_or_default());
    } else if !place.category.agrees_with(&declared) {
        faults.add(
            "category",
            format!(
                "`{}` differs from the folder of the file, `{}`",
                shown(&declared),
                place.category
            ),
            "move the file or change the field",
        );
    }
    declared
}
