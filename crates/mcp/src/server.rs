//! The server as a client sees it.

use crate::call;
use crate::changes::{Listener, ToolChanges};
use crate::{listing, skills, tasks};
use kenning_engine::runs::Run;
use kenning_engine::{Caller, Principal, Waited};
use kenning_tools::slots::Load;
use kenning_tools::{Board, Effect, Reply, Toolset, near};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    CompleteRequestMethod, CompleteRequestParams, CompleteResult, ConstString, CustomRequest,
    CustomResult, ErrorCode, GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse,
    GetTaskParams, GetTaskResult, Implementation, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestMethod, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, SetLevelRequestMethod, SubscribeRequestMethod, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestMethod, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use std::sync::Arc;

#[expect(deprecated, reason = "clients of the first era set the log level")]
use rmcp::model::SetLevelRequestParams;

const INSTRUCTIONS: &str = include_str!("instructions.md");

/// The methods that need no capability but `tools`.
const METHODS: &[&str] = &["server/discover", "tools/list", "tools/call"];
/// The methods of the handshake's era.
const METHODS_LEGACY: &[&str] = &["initialize", "ping"];

/// What can be served over [`stdio`](crate::stdio): a [`Server`], or something around one.
pub trait Handler: ServerHandler + Clone {
    /// The same for one connection, whose calls belong together.
    #[must_use]
    fn for_one_connection(self) -> Self;

    /// The server itself.
    fn server(&self) -> &Server;
}

impl Handler for Server {
    fn for_one_connection(mut self) -> Self {
        self.session = Some(self.board.engine().omi().new_session_id().into());
        self
    }

    fn server(&self) -> &Server {
        self
    }
}

/// The board, shown to MCP clients. Cheap to clone.
#[derive(Clone)]
pub struct Server {
    board: Board,
    principal: Principal,
    tools: Arc<[Tool]>,
    page_size: usize,
    changes: ToolChanges,
    /// What this connection is called in the store, where there is one connection.
    session: Option<Arc<str>>,
}

impl Server {
    /// A server over a board.
    ///
    /// The principal is the default caller: on stdio always, over HTTP when no layer has put a
    /// [`Principal`] into the extensions of the request.
    pub fn new(board: Board, principal: Principal) -> Self {
        let is_default_set = board.selection().is_default_set();
        let listed = board.listed().iter();
        let tools = listed.map(|it| listing::tool(*it, is_default_set));
        let tools = tools.collect();
        Self {
            board,
            principal,
            tools,
            page_size: listing::PAGE_SIZE,
            changes: ToolChanges::default(),
            session: None,
        }
    }

    /// The same server with another number of tools a page.
    #[must_use]
    pub fn with_page_size(mut self, page_size: usize) -> Self {
        self.page_size = page_size.max(1);
        self
    }

    /// Runs `work` as a call of the tool `name`: in one of the caller's slots, on a blocking thread, with
    /// its progress sent to the client, until the client cancels it. `None` when `work` knows no such tool.
    pub async fn run_as_tool(
        &self,
        name: &str,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(&Caller) -> Option<Reply> + Send + 'static,
    ) -> Result<Option<CallToolResult>, ErrorData> {
        let call = call::Request {
            principal: self.principal(context),
            waited: auth_wait(context),
            session: self.session.clone(),
            cancelled: context.ct.clone(),
            progress: context
                .meta
                .get_progress_token()
                .map(|token| (token, context.peer.clone())),
        };
        let refuse = |error| self.board.refused(name, error);
        call::run(self.board.slots(), Load::of_tool(name), call, refuse, work).await
    }

    /// How the task of a run is; `reply` makes the answer to its call of a run that has ended.
    ///
    /// # Errors
    /// There is no such run, and those of the store.
    pub async fn task_as(
        &self,
        request: GetTaskParams,
        context: &RequestContext<RoleServer>,
        reply: impl FnOnce(Run) -> Reply + Send + 'static,
    ) -> Result<GetTaskResult, ErrorData> {
        let can_ask = tasks::can_ask(context);
        tasks::get(
            &self.board,
            self.principal(context),
            request.task_id,
            can_ask,
            reply,
        )
        .await
    }

    /// The answer to a call whose run goes on as a task.
    pub fn task_of(run: &Run) -> CallToolResponse {
        tasks::created(run)
    }

    /// The default caller.
    pub(crate) fn default_principal(&self) -> &Principal {
        &self.principal
    }

    fn principal(&self, context: &RequestContext<RoleServer>) -> Principal {
        context
            .extensions
            .get::<http::request::Parts>()
            .and_then(|parts| parts.extensions.get::<Principal>())
            .unwrap_or(&self.principal)
            .clone()
    }

    /// Installed tools, which may change between calls.
    async fn installed(&self, principal: Principal) -> Vec<Tool> {
        let board = self.board.clone();
        let listed =
            call::run_blocking(self.board.slots(), Caller::new(principal), move |caller| {
                board.installed(caller)
            });
        let listed = listed.await.unwrap_or_else(|error| {
            // The built-in tools are listed anyway.
            tracing::warn!("the installed tools cannot be listed: {error}");
            Vec::new()
        });
        listed.into_iter().map(listing::installed).collect()
    }

    /// Whether directives are shown, and so are resources and prompts.
    fn has_items(&self) -> bool {
        let listed = self.board.listed();
        listed.iter().any(|it| it.toolset() == Toolset::Kiwi)
    }

    /// Whether calls may become tasks.
    fn has_tasks(&self) -> bool {
        self.board.find(tasks::TOOL).is_some()
    }

    /// Refuses a method of resources or prompts where directives are not shown.
    fn require_items<M: ConstString>(&self) -> Result<(), ErrorData> {
        match self.has_items() {
            true => Ok(()),
            false => Err(ErrorData::method_not_found::<M>()),
        }
    }

    /// The board.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Listens for changes of the installed tools.
    fn tool_changes(&self) -> Listener {
        self.changes.listen(&self.board, &self.principal)
    }

    /// Whether a method exists in the request's protocol version.
    fn answers(&self, method: &str, modern: bool) -> bool {
        METHODS.contains(&method)
            || (!modern && METHODS_LEGACY.contains(&method))
            || (self.has_items() && skills::METHODS.contains(&method))
            || (self.has_tasks() && tasks::METHODS.contains(&method))
    }
}

/// How long the outer layer took to authenticate the caller.
fn auth_wait(context: &RequestContext<RoleServer>) -> Waited {
    let parts = context.extensions.get::<http::request::Parts>();
    let waited = parts.and_then(|it| it.extensions.get::<Waited>());
    waited.copied().unwrap_or_default()
}

pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|it| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

#[expect(
    deprecated,
    reason = "clients of the first era still subscribe and set the log level"
)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed();
        let tools = match self.has_tasks() {
            true => tools.enable_tasks(),
            false => tools,
        };
        let capabilities = match self.has_items() {
            true => tools.enable_resources().enable_prompts().build(),
            false => tools.build(),
        };
        let mut implementation = Implementation::new("kenning", env!("CARGO_PKG_VERSION"));
        implementation.title = Some("Kenning".to_owned());
        let mut info = ServerConfig::new(capabilities).with_instructions(INSTRUCTIONS.trim_end());
        info.server_info = implementation;
        // The version offered to a client with an unknown one: the newest that has a handshake.
        info.protocol_version = ProtocolVersion::V_2025_11_25;
        info
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let principal = self.principal(&context);
        // A token is shown what it may call and nothing else.
        let may_call = |it: &&Tool| {
            let tool = self.board.find(&it.name);
            tool.is_none_or(|it| it.is_for(&principal))
        };
        let mut tools: Vec<Tool> = self.tools.iter().filter(may_call).cloned().collect();
        if principal.scopes.contains(&Effect::Run.scope()) {
            tools.extend(self.installed(principal).await);
        }
        listing::page(&tools, request, self.page_size)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let peer = context.peer;
        let mut changes = self.tool_changes();
        // Ends with the connection, when the notification can no longer be sent.
        tokio::spawn(async move {
            while changes.changed(|| !peer.is_transport_closed()).await {
                if peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        });
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let board = self.board.clone();
        let name = request.name.clone();
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let as_task = tasks::may_become(&name, &context);
        let work = move |caller: &Caller| match as_task {
            true => board.call(&name, arguments, &tasks::impatient(caller)),
            false => board.call(&name, arguments, caller),
        };
        let result = self.run_as_tool(&request.name, &context, work).await?;
        let answer = |result| match as_task {
            true => tasks::answer(result),
            false => CallToolResponse::Complete(result),
        };
        result.map(answer).ok_or_else(|| {
            let near = near::sentence(&self.board.near(&request.name));
            let near = near.trim_start();
            let message = match near {
                "" => format!("Unknown tool: {}", request.name),
                near => format!("Unknown tool: {}. {near}", request.name),
            };
            ErrorData::invalid_params(message, None)
        })
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.task_as(request, &context, kenning_tools::workflow_reply)
            .await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let UpdateTaskParams {
            task_id,
            input_responses,
            ..
        } = request;
        tasks::update(
            &self.board,
            self.principal(&context),
            task_id,
            input_responses,
        )
        .await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::cancel(&self.board, self.principal(&context), request.task_id).await
    }

    /// rmcp calls this for unknown methods, and for known ones with unreadable parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if self.answers(&method, is_modern(&context)) {
            let message = format!("Invalid params: {method}");
            return Err(ErrorData::invalid_params(message, None));
        }
        let message = format!("Method not found: {method}");
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.require_items::<ListPromptsRequestMethod>()?;
        skills::list_prompts(&self.board, self.principal(&context)).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.require_items::<GetPromptRequestMethod>()?;
        skills::get_prompt(&self.board, self.principal(&context), request).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.require_items::<ListResourcesRequestMethod>()?;
        skills::list_resources(&self.board, self.principal(&context), request).await
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.require_items::<ListResourceTemplatesRequestMethod>()?;
        Ok(skills::list_resource_templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.require_items::<ReadResourceRequestMethod>()?;
        skills::read_resource(&self.board, self.principal(&context), &request.uri).await
    }

    // rmcp would answer the next four as if the server did what they ask for.

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Err(ErrorData::method_not_found::<SetLevelRequestMethod>())
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Err(ErrorData::method_not_found::<SubscribeRequestMethod>())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Err(ErrorData::method_not_found::<UnsubscribeRequestMethod>())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let wanted = requested.tools_list_changed == Some(true);
        wanted.then(|| SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.tool_changes();
        loop {
            let goes_on = tokio::select! {
                goes_on = changes.changed(|| true) => goes_on,
                () = context.cancelled() => return Ok(()),
            };
            if !goes_on || context.sink().notify_tool_list_changed().await.is_err() {
                return Ok(());
            }
        }
    }
}
