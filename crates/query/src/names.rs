//! Names of labels, types and properties, as small numbers.

use std::collections::HashMap;
use std::sync::Arc;

/// Names and their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    names: Vec<Arc<str>>,
    tokens: HashMap<Arc<str>, u32>,
}

impl Names {
    pub(crate) fn token(&mut self, name: &str) -> u32 {
        if let Some(token) = self.tokens.get(name) {
            return *token;
        }
        let token = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = Arc::from(name);
        self.names.push(Arc::clone(&name));
        self.tokens.insert(name, token);
        token
    }

    /// The number of a name.
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.tokens.get(name).copied()
    }

    /// The number of a name, in whatever case it is written, if only one name fits.
    pub(crate) fn find_in_any_case(&self, name: &str) -> Option<u32> {
        self.find(name).or_else(|| {
            let lower = name.to_lowercase();
            let mut like = self.names.iter().zip(0..);
            let fits = |(known, _): &(&Arc<str>, u32)| known.to_lowercase() == lower;
            let found = like.find(fits)?.1;
            like.find(fits).is_none().then_some(found)
        })
    }

    pub(crate) fn name(&self, token: u32) -> Arc<str> {
        self.names.get(token as usize).cloned().unwrap_or_default()
    }

    pub(crate) fn all(&self) -> &[Arc<str>] {
        &self.names
    }
}
