//! Long outputs: kept in a file, and cut in the answer.

use super::ToolItemRun;
use super::plan::Plan;
use crate::Engine;
use crate::items::sign::seconds;
use kenning_core::{Hash, Result};
use serde_json::{Value, json};

/// What is longer is saved.
const SAVED_BYTES: usize = 10 * 1024;
/// What is longer is cut.
const SHOWN_BYTES_MAX: usize = 1024 * 1024;
/// So many are kept of each tool.
const KEPT: usize = 10;

impl Engine {
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
        for name in ["stdout", "stderr", "body"] {
            if let Some(Value::String(text)) = done.data.get_mut(name) {
                done.is_truncated |= cut(text);
            }
        }
        match &mut done.result {
            Value::String(text) => done.is_truncated |= cut(text),
            // A part of a value would be another value.
            other if other.to_string().len() > SHOWN_BYTES_MAX => {
                *other = Value::Null;
                done.is_truncated = true;
            }
            _ => {}
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
        let at = seconds(self.log.clock().now_ms());
        let mut bytes = [0; 16];
        self.log.random().fill(&mut bytes);
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
            .filter(|it| it.ends_with(".json") && *it != name)
            .collect();
        others.sort_unstable();
        let n_old = (others.len() + 1).saturating_sub(KEPT);
        for old in others.iter().take(n_old) {
            // Another process may have been quicker.
            if let Err(error) = dir.remove(old) {
                tracing::debug!("the old output `{old}` stays: {error}");
            }
        }
        let path = dir.path().join(name);
        Ok(Some(path.to_string_lossy().into_owned()))
    }
}

/// Cuts a text that is very long. Says whether it did.
fn cut(text: &mut String) -> bool {
    if text.len() <= SHOWN_BYTES_MAX {
        return false;
    }
    text.truncate(text.floor_char_boundary(SHOWN_BYTES_MAX));
    true
}
