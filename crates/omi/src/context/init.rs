//! The directory as `omi init` makes it.

use super::now;
use crate::Omi;
use kenning_core::Result;
use kenning_kernel::Caller;
use kenning_kernel::files::Writing;
use kenning_memory::config;
use kenning_memory::now as now_file;

/// What `omi init` writes: the documented keys. Those that need a service are comments, because a key
/// without effect is refused.
const TEMPLATE: &str = "\
# `omi config show` shows every key with what holds for it.

embedding:
  provider: builtin  # or nim, ollama, openai, local
  # With one of those:
  # model: baai/bge-m3  # nomic-embed-text for ollama
  # dimensions: 1024  # 768 for ollama
  # api_key: ${NIM_API_KEY}

storage:
  max_now_tokens: 1000
  recency_half_life_days: 30

vault:
  enabled: true
  provider: local  # or r2
  retention_days: 90

security:
  enable_consensus: false
  integrity_check_on_start: true
";

impl Omi {
    /// Makes the directory with `config.yaml` and an empty NOW.md; existing files stay. Returns the
    /// names of what was made.
    pub fn init_context(&self, caller: &Caller) -> Result<Vec<&'static str>> {
        let dir = self.context_to_write(caller)?;
        let mut made = Vec::new();
        if !dir.exists(config::FILE)? {
            dir.write_private(config::FILE, TEMPLATE.as_bytes())
                .map_err(|error| self.kernel.omi().unwritable(error))?;
            made.push(config::FILE);
        }
        if !dir.exists(now_file::FILE)? {
            let file = self.kernel.omi().file(now_file::FILE, now::BYTES_MAX);
            let writing = |before: Option<&str>| {
                // What somebody else wrote meanwhile is kept.
                let content = before.unwrap_or(now_file::DEFAULT).to_owned();
                Ok(Writing::new(content, "NowInitialized"))
            };
            self.write_context_file(caller, &dir, &file, writing)?;
            made.push(now_file::FILE);
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_memory::config::Config;

    #[test]
    fn what_init_writes_is_the_default_and_can_be_changed() {
        assert_eq!(Config::parse(TEMPLATE).unwrap(), Config::default());
        let text = config::set(TEMPLATE, "embedding.provider", "ollama").unwrap();
        let text = config::set(&text, "embedding.model", "nomic-embed-text").unwrap();
        assert_eq!(
            config::get(&text, "embedding.model").unwrap(),
            "nomic-embed-text"
        );
        assert_eq!(text.lines().count(), TEMPLATE.lines().count() + 1);
    }
}
