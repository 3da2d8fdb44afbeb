//! Long outputs: saved in a file, and cut in the response.

use super::ToolItemRun;
use super::plan::Plan;
use crate::Kiwi;
use crate::trust::seconds;
use kenning_core::{Hash, Result};
use serde_json::{Value, json};

/// Longer output is saved.
const SAVED_BYTES: usize = 10 * 1024;
/// Longer output is cut.
const SHOWN_BYTES_MAX: usize = 1024 * 1024;
/// At most this many are kept for each tool.
const KEPT: usize = 10;

impl Kiwi {
    /// Saves a long output beside the items, and cuts a very long one.
    pub(super) fn keep_output(&self, plan: &Plan, done: &mut ToolItemRun) -> Result<()> {
        let texts =
            ["stdout", "stderr", "body"].map(|it| done.data[it].as_str().map_or(0, str::len));
        let n_bytes = match texts.iter().sum() {
            0 if done.data.is_null() => 0,
            0 => done.data.to_string().len(),
            n_bytes => n_bytes,
        };
        if n_bytes <= SAVED_BYTES {
            return Ok(());
        }
        let saved = self.save_output(plan, done);
        let fields = done.data.as_object_mut();
        let fields = fields.into_iter().flat_map(|it| it.values_mut());
        for value in fields.chain([&mut done.result]) {
            done.is_truncated |= cut(value);
        }
        done.output_path = saved?;
        Ok(())
    }

    fn save_output(&self, plan: &Plan, done: &ToolItemRun) -> Result<Option<String>> {
        let beside = self.side_dir(plan.package.scope, plan.project.as_ref(), true)?;
        let Some(beside) = beside else {
            return Ok(None);
        };
        let dir = beside.create_subdir(&format!("outputs/tools/{}", plan.tool.id))?;
        let at = seconds(self.kernel.log().clock().now_ms());
        let mut bytes = [0; 16];
        self.kernel.log().random().fill(&mut bytes);
        let random = Hash::of(&bytes).to_string();
        let name = format!("{}-{}.json", at.replace(':', ""), &random[..8]);
        let text = json!({
            "tool": plan.tool.id, "version": plan.tool.version, "timestamp": at,
            "success": done.success, "data": done.data,
        });
        dir.write(&name, format!("{text:#}\n").as_bytes())?;
        let mut others: Vec<String> = dir
            .list("")?
            .into_iter()
            .map(|it| it.name)
            .filter(|file| file.ends_with(".json") && *file != name)
            .collect();
        others.sort_unstable();
        let n_old = (others.len() + 1).saturating_sub(KEPT);
        for old in others.iter().take(n_old) {
            // Another process may have removed it.
            if let Err(error) = dir.remove(old) {
                tracing::debug!("the old output `{old}` could not be removed: {error}");
            }
        }
        let path = dir.path().join(name);
        Ok(Some(path.to_string_lossy().into_owned()))
    }
}

/// Cuts a very long value; true if it did.
fn cut(value: &mut Value) -> bool {
    match value {
        Value::String(text) if text.len() > SHOWN_BYTES_MAX => {
            text.truncate(text.floor_char_boundary(SHOWN_BYTES_MAX));
            true
        }
        // A part of a value would be another value.
        Value::Array(_) | Value::Object(_) if value.to_string().len() > SHOWN_BYTES_MAX => {
            *value = Value::Null;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_a_long_value_left_out() {
        let long = "é".repeat(SHOWN_BYTES_MAX);
        let mut text = Value::from(format!("x{long}"));
        assert!(cut(&mut text));
        assert_eq!(text.as_str().unwrap().len(), SHOWN_BYTES_MAX - 1);
        assert!(!cut(&mut text));
        let mut list = json!([long]);
        assert!(cut(&mut list));
        assert_eq!(list, Value::Null);
        let mut short = json!({ "a": 1 });
        assert!(!cut(&mut short));
        assert_eq!(short, json!({ "a": 1 }));
    }
}
