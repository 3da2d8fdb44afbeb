//! What the generated bindings call. Memory for incoming texts comes from the C library of
//! `wasm32-wasip2`, which exports `cabi_realloc`; only this is left.

/// Runs the constructors of the C library before the tool's first export does anything.
///
/// A `cdylib` has no start code that would. If nothing called them the linker would wrap every export
/// in a call of its own, the one that hands out memory included.
#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code, reason = "the linker provides the function")]
pub fn run_ctors_once() {
    use std::sync::Once;

    unsafe extern "C" {
        fn __wasm_call_ctors();
    }

    static RUN: Once = Once::new();
    // SAFETY: made by the linker in every module, takes nothing, and is called once.
    RUN.call_once(|| unsafe { __wasm_call_ctors() });
}

/// Asks for `cabi_realloc` to be linked, where the C library does not bring it.
pub fn maybe_link_cabi_realloc() {}
