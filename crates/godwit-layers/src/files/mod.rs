//! Files: a folder on disk, or the pages built into the program. They answer `GET` and `HEAD`.

mod beneath;
mod body;
mod closed;
mod conditions;
mod embedded;
mod folder;
mod memory;
mod open;
mod page_cache;
mod pages;
mod path;
mod piece_buffer;
mod range;
mod recent;

pub use embedded::{Embedded, Page};
pub use folder::{Folder, FolderError, FolderSettings};
