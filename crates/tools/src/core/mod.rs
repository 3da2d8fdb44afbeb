//! One search over everything, notes as people edit them, and reading through any other tool. No contract has
//! these; they are what a model is shown first.

mod execute_read;
mod find;
mod note_delete;
mod note_list;
mod note_move;
mod note_read;
mod note_write;

pub use execute_read::ExecuteRead;
pub use find::Find;
pub use note_delete::NoteDelete;
pub use note_list::NoteList;
pub use note_move::NoteMove;
pub use note_read::NoteRead;
pub use note_write::NoteWrite;
