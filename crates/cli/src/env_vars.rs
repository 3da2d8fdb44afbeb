//! Every environment variable that Kenning reads; the manual's page is generated from it.

/// An environment variable.
pub struct EnvVar {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
}

macro_rules! env_vars {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal;)*) => {
        $($(#[doc = $doc])+ pub const $name: &str = $text;)*

        /// All of them, in the order of the manual.
        pub const ALL: &[EnvVar] = &[$(EnvVar { name: $text, doc: concat!($($doc,)+) }),*];
    };
}

env_vars! {
    /// The data directory; `--data` wins over it. Default: `kenning` in the XDG data directory.
    DATA = "KENNING_DATA";
    /// The database to keep everything in (`postgres://…`) instead of the data directory;
    /// `--database` wins over it.
    DATABASE_URL = "KENNING_DATABASE_URL";
    /// A file with the certificates (PEM) that the database's own is checked against, when not the
    /// public ones; `--database-ca` wins over it.
    DATABASE_CA = "KENNING_DATABASE_CA";
    /// After how many events the log signs a checkpoint by itself, at least 10. Default: 1024.
    CHECKPOINT_EVERY = "KENNING_CHECKPOINT_EVERY";
    /// The same, by the name of the graph contract; `KENNING_CHECKPOINT_EVERY` wins over it.
    EXOCHAIN_CHECKPOINT_INTERVAL = "EXOCHAIN_CHECKPOINT_INTERVAL";
    /// The method of the identifiers that are shown: `key` (the default), or `exo` for `did:exo:…`. The keys and
    /// what they sign are the same, and both forms are understood wherever a key is named.
    DID_METHOD = "KENNING_DID_METHOD";
    /// The agent on whose behalf this process writes, by its name: its identifier stands in the log beside
    /// the node's (`kenning agent-key`).
    AGENT = "KENNING_AGENT";
    /// The vault of notes; `--vault` wins over it. Only the vault tools need it.
    VAULT_PATH = "VAULT_PATH";
    /// The directory of NOW.md, the daily logs and `config.yaml`; `--omi-path` wins over it. Default:
    /// `~/.openclaw/omi`. It is made by the first write.
    OMI_BASE_PATH = "OMI_BASE_PATH";
    /// How often a serving process calls its peers, in milliseconds; what is written here goes over within
    /// seconds all the same. Default: 300000. With 0 it never calls by itself, and `kenning peer sync` does.
    SYNC_INTERVAL = "KENNING_SYNC_INTERVAL_MS";
    /// The same, by the name of the graph contract; `KENNING_SYNC_INTERVAL_MS` wins over it.
    EXOCHAIN_SYNDICATION_INTERVAL = "EXOCHAIN_SYNDICATION_INTERVAL";
    /// How often a node of KOI-net that cannot be called polls the nodes that it subscribes to, in milliseconds.
    /// Default: 60000.
    FEDERATION_POLL = "KENNING_FEDERATION_POLL_MS";
    /// The project whose documents make the graph; `--project` wins over it. Default: the nearest
    /// directory above the working directory that has `.kenning`, `.ai` or `.git`, else that itself.
    PROJECT = "KENNING_PROJECT";
    /// The same, by the name of the graph contract; `KENNING_PROJECT` wins over it.
    KG_PROJECT_ROOT = "KG_PROJECT_ROOT";
    /// `off`: memories, NOW.md and the daily logs belong to no project, and every client sees them all.
    /// Default: `on`.
    PROJECTS = "KENNING_PROJECTS";
    /// Where WASM tools, their compiled code and their own directories are kept. Default: `kami` in the
    /// data directory.
    KAMI_DATA_DIR = "KAMI_DATA_DIR";
    /// The https address or the file of an index of WASM tools, for `kami search`; `--registry` wins over it.
    /// Default: none, and only installed tools are searched.
    KAMI_REGISTRY = "KAMI_REGISTRY";
    /// The user's own directives, tools and knowledge. Default: `~/.ai`. Where it is not set, the user's
    /// knowledge is written to `~/.knowledge-kiwi`.
    USER_SPACE = "USER_SPACE";
    /// The address of another registry than the store's own.
    KIWI_REGISTRY_URL = "KIWI_REGISTRY_URL";
    /// The token for that registry.
    KIWI_REGISTRY_TOKEN = "KIWI_REGISTRY_TOKEN";
    /// The address of another KOI server, which then answers the KOI tools and the KOI API of this one
    /// (those of the vault's notes stay here). An address of our own means here. Default: here.
    KOI_API_ENDPOINT = "KOI_API_ENDPOINT";
    /// The token for that server.
    KOI_API_TOKEN = "KOI_API_TOKEN";
    /// Directories, separated by colons, whose git repositories may be registered by their paths. Without
    /// it only repositories behind `https://` are, and the project that Kenning is started in.
    REPO_PATHS = "KENNING_REPO_PATHS";
    /// Hosts, separated by commas, whose repositories may be fetched although they are not of the public
    /// internet, for example `git.company.internal` or `10.0.0.5:8443`.
    REPO_HOSTS = "KENNING_REPO_HOSTS";
    /// Repositories, separated by commas, that an agent may register by scanning them: `owner/name` and
    /// `owner/*` at GitHub, or `https://host/owner/*`. Those beneath `KENNING_REPO_PATHS` may be always.
    REPO_ALLOW = "KENNING_REPO_ALLOW";
    /// Tokens for private repositories, as `host=token` separated by commas. Each goes to its host only, and only when
    /// that refuses to answer without; else the credential helpers of your git are asked.
    REPO_TOKENS = "KENNING_REPO_TOKENS";
    /// A token for private repositories at github.com, and no other host.
    GITHUB_TOKEN = "GITHUB_TOKEN";
    /// The same; `GITHUB_TOKEN` wins over it.
    GH_TOKEN = "GH_TOKEN";
    /// A file with the certificates (PEM) that servers of repositories are trusted by, when not the
    /// system's.
    GIT_SSL_CAINFO = "GIT_SSL_CAINFO";
    /// After how many seconds `kenning serve` and `kenning mcp` scan each repository again; `0` for never. Default: 21600.
    REPO_INTERVAL = "KENNING_REPO_INTERVAL";
    /// An mbox file, a Maildir, or a folder of those, whose messages are found by `knowledge_search`. It is
    /// only read.
    MAIL = "KENNING_MAIL";
    /// Addresses that `preview_url` and `monitor_url` may fetch although they are not of the public internet,
    /// separated by commas: `http://127.0.0.1:8080`, `wiki.internal`, `10.0.0.0/8`.
    WEB_ALLOW = "KENNING_WEB_ALLOW";
    /// How many pages may be previewed in an hour; 0 is no limit. Default: 20. Addresses of
    /// `KENNING_WEB_ALLOW` do not count.
    WEB_PREVIEWS_PER_HOUR = "KENNING_WEB_PREVIEWS_PER_HOUR";
    /// The same for each `submitted_by`. Default: 5.
    WEB_PREVIEWS_PER_HOUR_EACH = "KENNING_WEB_PREVIEWS_PER_HOUR_EACH";
    /// `false` switches the monitoring of pages off.
    WEB_SENSOR_ENABLED = "WEB_SENSOR_ENABLED";
    /// Seconds between two looks at a monitored page. Default: 86400.
    WEB_SENSOR_INTERVAL = "WEB_SENSOR_INTERVAL";
    /// `false` switches `process_url` off.
    LLM_ENRICHMENT_ENABLED = "LLM_ENRICHMENT_ENABLED";
    /// The address of a language model (`http://127.0.0.1:11434/v1`), which agents, `process_url` and others then
    /// ask. Without one everything works by rules. Default: that of the provider.
    MODEL_ENDPOINT = "KENNING_MODEL_ENDPOINT";
    /// Its format: `openai` (also what imitates it), `anthropic` or `ollama`. Default: `openai`.
    MODEL_PROVIDER = "KENNING_MODEL_PROVIDER";
    /// The name of the model there.
    MODEL_NAME = "KENNING_MODEL_NAME";
    /// The key for it, if it wants one.
    MODEL_KEY = "KENNING_MODEL_KEY";
    /// Seconds that one answer of it may take. Default: 120.
    MODEL_TIMEOUT = "KENNING_MODEL_TIMEOUT";
    /// Tokens that one run of an agent may use. Default: 60000.
    MODEL_TOKENS = "KENNING_MODEL_TOKENS";
    /// How often a question is asked again when the model is busy. Default: 3.
    MODEL_RETRIES = "KENNING_MODEL_RETRIES";
    /// A key of Gemini: with `LLM_ENRICHMENT_ENABLED=true` it names that model, unless `KENNING_MODEL_…` name
    /// another.
    GEMINI_API_KEY = "GEMINI_API_KEY";
    /// The passphrase that `kenning omi backup` and `vault_backup` seal new backups with, and open sealed
    /// ones with. Without it backups are not encrypted.
    MOLTVAULT_KEY = "MOLTVAULT_KEY";
    /// The space that the command line and stdio work in. Default: `default`.
    SPACE = "KENNING_SPACE";
    /// The toolsets to show, separated by commas; `--toolsets` wins over it.
    TOOLSETS = "KENNING_TOOLSETS";
    /// A token with every scope that `kenning serve` and `kami serve` accept, beside those of `kenning token`.
    TOKEN = "KENNING_TOKEN";
    /// The same, for clients of the memory contract, which send it as `X-API-Key`; `KENNING_TOKEN` wins
    /// over it.
    OMI_API_KEY = "OMI_API_KEY";
    /// `1` asks callers on this machine for no token: every user of it, and every visitor of a proxy on it, may
    /// do everything. `--no-token` does the same.
    NO_TOKEN = "KENNING_NO_TOKEN";
    /// Origins of pages that may call `kenning serve` (CORS), separated by commas; `--allow-origin` wins over
    /// it. Default: those of this machine only.
    ALLOW_ORIGINS = "KENNING_ALLOW_ORIGINS";
    /// How many milliseconds `kenning hook` may take before it answers without memories, and says so.
    /// Default: 100.
    HOOK_BUDGET_MS = "KENNING_HOOK_BUDGET_MS";
    /// `off`: hooks capture nothing. Default: `on`.
    CAPTURE = "KENNING_CAPTURE";
    /// What the program logs on standard error, for example `info` or `kenning_rest=debug`.
    LOG = "KENNING_LOG";
    /// Where data directories are when nothing else is said.
    XDG_DATA_HOME = "XDG_DATA_HOME";
}
