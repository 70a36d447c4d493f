//! Files: a folder on disk, or the pages built into the program. They answer `GET` and `HEAD`.

mod body;
mod conditions;
mod embedded;
mod folder;
mod pages;
mod path;
mod range;

pub(crate) use embedded::Embedded;
pub(crate) use folder::Folder;
