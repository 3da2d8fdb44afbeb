//! Entities, and where what is known of them comes from: notes, pages of the web, repositories and mail.
//!
//! `entities` is the graph; `notes` are files of the vault, `web` fetches pages, `repositories` reads
//! files of git and `mail` messages. `inert` takes out of a stranger's text what could act on whoever
//! shows it. `federation` exchanges them with other nodes of KOI-net. With `far`, another server answers in place of this one. Nothing here is run or obeyed
//! because a text says so.

mod describe;
mod entities;
mod everything;
mod far;
mod federation;
mod inert;
mod mail;
mod note_edits;
mod notes;
mod repositories;
mod web;

pub use describe::{DescribeEntities, DescribedEntities, DescribedEntity};
pub use entities::{
    Company, EntityCandidate, EntityContext, EntityDocument, EntityDocuments, EntityImport,
    EntityOutcome, EntityResolution, EntityStats, EntityType, EntityTypes, EntityView,
    FoundDocument, FoundEntities, FoundEntity, FoundKnowledge, FoundPassage, Identities,
    ImportedEntities, InCompany, KnowledgeQuery, MergeOutcome, MergeProposal, MergedEntity,
    Neighborhood, NoteState, PendingRelationship, ProposedEntity, RegisterEntity, RegisteredEntity,
    RelationOutcome, Relationship, RelationshipStats, SearchMethod, StatedDocument, StatedEntity,
    StatedMerge, StatedRelation, StatementOutcome, SyncedRelationships, Veto, faults_of_statements,
    frontmatter_fault, merged, normalized_name, passages_of,
};
pub use everything::{FindQuery, Findable, FoundThing, FoundThings};
pub use far::{FORWARDED, FarAnswer, FarServer};
pub use federation::{
    Carried, Carrier, Connect, CrossReferenceView, DeadLetter, Destination, EdgeView,
    FEDERATION_BYTES_MAX, FEDERATION_PATHS, FederationAnswer, FederationHttp, FederationIdentity,
    FederationPeer, FederationSetup, FederationStatus, FederationWorker, PeerPolicyChange,
    QueuedView,
};
pub use mail::{MailMessage, MailRead};
pub use note_edits::{DeletedNote, ListedFolder, ListedVault, MovedNote, NoteEdit, NoteRevision};
pub use repositories::{
    CodeLink, CodeQuestion, CodeSymbol, ForgottenRepository, NewRepository, Registered,
    RepositoryFile, RepositoryOptions, RepositoryStatus, RepositoryView, ScanProgress, ScanResult,
    Scanned, Skipped, Watching,
};
pub use web::{
    EvaluatedPage, ExtractedEntity, ExtractedRelation, IngestRequest, IngestedPage, Ingestion,
    MatchedEntity, MonitorAdded, MonitorStatus, MonitoredPage, PREVIEW_DAYS_MAX, PREVIEWS_MAX,
    PageEvaluation, PageMetadata, PagePreview, PageSafety, PageWatch, PreviewRequest, Previewed,
    ProcessRequest, ProcessedPage, ScannedPages, WatchPace, WebAbilities, WebEntity, WebFault,
    WebFaultKind, WebOptions, WebRelation, WebResult, n_previewed, note_of_entity,
};

use kenning_core::Result;
use kenning_kernel::{Caller, Kernel};
use kenning_kg::Kg;
use kenning_kiwi::Kiwi;
use std::path::PathBuf;
use std::sync::Arc;

/// Where pages, repositories and mail come from.
#[derive(Debug, Default)]
pub struct Options {
    /// Which repositories may be read.
    pub repositories: RepositoryOptions,
    /// An mbox file, a Maildir, or a folder of those (`KENNING_MAIL`). It is only read.
    pub mail: Option<PathBuf>,
    /// How pages of the web are reached.
    pub web: WebOptions,
}

/// Whether a file is read for symbols, by its name.
pub fn is_code(path: &str) -> bool {
    kenning_code::Language::of_path(path).is_some()
}

/// Entities and their sources.
pub struct Koi {
    kernel: Arc<Kernel>,
    kg: Arc<Kg>,
    kiwi: Arc<Kiwi>,
    entities: entities::Entities,
    far: far::Far,
    federation: federation::Federation,
    repositories: repositories::Repositories,
    mail: mail::Mail,
    web: web::Web,
}

impl Koi {
    /// Uses a kernel, and the crates whose documents and items it finds.
    pub fn new(kernel: Arc<Kernel>, kg: Arc<Kg>, kiwi: Arc<Kiwi>, options: Options) -> Self {
        // Repositories and mail belong to the same space as the directories.
        let space = kernel.vault().space().clone();
        let repositories = repositories::Repositories::new(options.repositories, &kernel);
        Self {
            kernel,
            kg,
            kiwi,
            entities: entities::Entities::default(),
            far: far::Far::default(),
            federation: federation::Federation::default(),
            repositories,
            mail: mail::Mail::new(options.mail, space),
            web: web::Web::new(options.web),
        }
    }
}

impl kenning_kg::Entities for Koi {
    fn follow(&self, caller: &Caller) -> Result<()> {
        self.follow_entities(caller)
    }
}
