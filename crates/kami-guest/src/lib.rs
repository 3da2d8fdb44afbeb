//! For people who write WASM tools.
