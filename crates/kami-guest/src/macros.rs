//! The macro, and nothing else.

/// Makes a function the tool of the crate.
///
/// ```
/// # use kami_guest::kami_tool;
/// kami_tool! {
///     name: "dev.example.my-tool",
///     version: "1.0.0",
///     description: "Description for MCP",
///     handler: my_handler_function,
/// }
///
/// fn my_handler_function(input: &str) -> Result<String, String> {
///     Ok(input.to_owned())
/// }
/// ```
///
/// The input is the JSON text of the arguments. What `Ok` holds is answered, and should be JSON as
/// well; what `Err` holds is a sentence for whoever called.
///
/// It makes `__kami_run(input: &str) -> Result<String, String>`, which calls the handler,
/// `__kami_describe() -> String`, which is name, version and description as JSON, and in a build for
/// `wasm32-wasip2` the component's exports.
///
/// The fields stand in this order. Any constant will do, such as `env!("CARGO_PKG_VERSION")`.
///
/// With `exports: false` as the last field the two functions are made and no exports: for a crate that
/// exports them by hand, say from a world of its own, or that is only a part of a tool.
#[macro_export]
macro_rules! kami_tool {
    (
        name: $name:expr,
        version: $version:expr,
        description: $description:expr,
        handler: $handler:expr $(,)?
    ) => {
        $crate::kami_tool! {
            name: $name,
            version: $version,
            description: $description,
            handler: $handler,
            exports: true,
        }
    };
    (
        name: $name:expr,
        version: $version:expr,
        description: $description:expr,
        handler: $handler:expr,
        exports: true $(,)?
    ) => {
        $crate::kami_tool! {
            name: $name,
            version: $version,
            description: $description,
            handler: $handler,
            exports: false,
        }

        #[cfg(target_arch = "wasm32")]
        const _: () = {
            struct KamiTool;

            impl $crate::bindings::exports::kami::tool::tool::Guest for KamiTool {
                fn run(input: ::std::string::String) -> $crate::__HandlerResult {
                    __kami_run(&input)
                }

                fn describe() -> ::std::string::String {
                    __kami_describe()
                }
            }

    $crate::bindings::__export_kami_tool!(KamiTool with_types_in $crate::bindings);
        };
    };
    (
        name: $name:expr,
        version: $version:expr,
        description: $description:expr,
        handler: $handler:expr,
        exports: false $(,)?
    ) => {
        #[doc(hidden)]
        pub fn __kami_run(input: &str) -> $crate::__HandlerResult {
            let handler: fn(&str) -> $crate::__HandlerResult = $handler;
            handler(input)
        }

        #[doc(hidden)]
        pub fn __kami_describe() -> ::std::string::String {
            $crate::metadata($name, $version, $description)
        }
    };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "`kami_tool!` takes `name`, `version`, `description` and `handler`, in this order, and \
             then, if you like, `exports: false`"
        );
    };
}
