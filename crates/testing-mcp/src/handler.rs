//! The server with the fixtures around it.

use crate::fixtures::{Fixtures, Jobs};
use kenning_mcp::{Handler, Server};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, CustomRequest, CustomResult, ErrorCode, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
    SetLevelRequestMethod, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::sync::{Arc, OnceLock};

#[expect(deprecated, reason = "clients of the first era set the log level")]
use rmcp::model::SetLevelRequestParams;

/// A server that also answers what the conformance suite asks for. Cheap to clone.
#[derive(Clone)]
pub struct WithFixtures {
    server: Server,
    fixtures: Arc<Fixtures>,
    jobs: Arc<OnceLock<Jobs>>,
}

impl WithFixtures {
    /// The fixtures around a server.
    pub fn new(server: Server) -> Self {
        Self {
            server,
            fixtures: Arc::default(),
            jobs: Arc::default(),
        }
    }
}

impl Handler for WithFixtures {
    fn for_one_connection(self) -> Self {
        Self {
            server: self.server.for_one_connection(),
            ..self
        }
    }

    fn server(&self) -> &Server {
        &self.server
    }
}

pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|it| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// A list of the server's; none where the server has no such method, because its toolsets need none.
fn listed<T>(answer: Result<T, ErrorData>) -> Result<Option<T>, ErrorData> {
    match answer {
        Ok(list) => Ok(Some(list)),
        Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND => Ok(None),
        Err(error) => Err(error),
    }
}

#[expect(
    deprecated,
    reason = "clients of the first era still subscribe and set the log level"
)]
impl ServerHandler for WithFixtures {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.server.get_info();
        info.capabilities = Fixtures::capabilities();
        info
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.server.on_initialized(context).await;
    }

    /// The server's tools, and the fixtures after the last of them.
    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut page = self.server.list_tools(request, context).await?;
        if page.next_cursor.is_none() {
            page.tools.extend(self.fixtures.tools());
        }
        Ok(page)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let own = self.fixtures.tools().find(|tool| tool.name == name);
        own.or_else(|| self.server.get_tool(name))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if Fixtures::has_tool(&request.name) {
            return self.fixtures.call(request, context).await;
        }
        if Fixtures::has_work(&request.name) {
            let (fixtures, name) = (self.fixtures.clone(), request.name.clone());
            let work = move |caller: &_| fixtures.work(&name, caller);
            let result = self.server.run_as_tool(&request.name, &context, work).await;
            let unknown = || ErrorData::internal_error("a fixture is listed but missing", None);
            return Ok(result?.ok_or_else(unknown)?.into());
        }
        if Fixtures::has_job(&request.name) {
            self.jobs.get_or_init(|| Jobs::start(self.server.board()));
            return Fixtures::start_job(&self.server, request, context).await;
        }
        self.server.call_tool(request, context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.server
            .task_as(request, &context, Fixtures::reply)
            .await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.server.update_task(request, context).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.server.cancel_task(request, context).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if Fixtures::answers(&request.method, is_modern(&context)) {
            let message = format!("Invalid params: {}", request.method);
            return Err(ErrorData::invalid_params(message, None));
        }
        self.server.on_custom_request(request, context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut own = self.fixtures.list_prompts();
        if let Some(list) = listed(self.server.list_prompts(request, context).await)? {
            own.prompts.extend(list.prompts);
        }
        Ok(own)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        match self.fixtures.get_prompt(&request)? {
            Some(prompt) => Ok(prompt),
            None => self.server.get_prompt(request, context).await,
        }
    }

    /// The fixtures, and the first page of the server's resources: the server's own cursors go on from there.
    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let is_first = request.as_ref().is_none_or(|it| it.cursor.is_none());
        let list = listed(self.server.list_resources(request, context).await)?;
        let mut list = list.unwrap_or_else(|| ListResourcesResult::with_all_items(Vec::new()));
        if is_first {
            list.resources.splice(..0, self.fixtures.resources());
        }
        Ok(list)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut own = self.fixtures.list_resource_templates();
        let list = self.server.list_resource_templates(request, context).await;
        if let Some(list) = listed(list)? {
            own.resource_templates.extend(list.resource_templates);
        }
        Ok(own)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match Fixtures::read_resource(&request.uri) {
            Some(resource) => Ok(resource),
            None => self.server.read_resource(request, context).await,
        }
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(CompleteResult::default())
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_modern(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        self.fixtures.set_level(request.level);
        Ok(())
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.fixtures.listen(context).await
    }
}
