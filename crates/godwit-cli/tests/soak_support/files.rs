//! What is served, and what it must be when it has arrived.

use godwit_tls::Sha256;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use tempfile::TempDir;

/// Files enough for a round, no two alike.
pub(crate) struct Site {
    folder: TempDir,
    pub(crate) big: Served,
    pub(crate) small: Vec<Served>,
    /// For a connection each.
    pub(crate) parallel: Vec<Served>,
}

/// A file that is served.
pub(crate) struct Served {
    /// Of its URL, with the slash at the beginning.
    pub(crate) path: String,
    length: u64,
    digest: [u8; 32],
}

impl Site {
    /// Writes a big file of so many bytes, and so many smaller ones of so many bytes each.
    pub(crate) fn new(big: u64, small: (usize, u64), parallel: (usize, u64)) -> Site {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for name in ["big", "small", "parallel"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let write = |kind: &str, number: usize, length: u64| {
            Served::write(folder.path(), format!("/{kind}/{kind}-{number:04}"), length)
        };
        let many = |kind: &str, (count, length): (usize, u64)| {
            (0..count).map(|number| write(kind, number, length)).collect::<Vec<_>>()
        };
        let (big, small, parallel) = (write("big", 0, big), many("small", small), many("parallel", parallel));
        Site { folder, big, small, parallel }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// A new folder for what arrives, beside what is served.
    pub(crate) fn receiving(&self) -> TempDir {
        tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
    }
}

impl Served {
    fn write(root: &Path, path: String, length: u64) -> Served {
        let mut file = BufWriter::new(File::create(root.join(&path[1..])).unwrap());
        let mut context = Sha256::new();
        // Bytes that differ by file and place, so that what is lost, doubled or swapped shows.
        let seed =
            path.bytes().fold(0_u64, |seed, byte| seed.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte));
        let mut block = Vec::with_capacity(64 << 10);
        for start in (0..length).step_by(64 << 10) {
            let size = (length - start).min(64 << 10) as usize;
            block.clear();
            block.extend((0..size.div_ceil(8) as u64).flat_map(|word| mixed(seed ^ (start / 8 + word))));
            file.write_all(&block[..size]).unwrap();
            context.update(&block[..size]);
        }
        file.into_inner().unwrap();
        Served { path, length, digest: context.finish() }
    }

    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap()
    }

    /// Makes sure that the file which arrived is this one.
    #[track_caller]
    pub(crate) fn assert_equal(&self, arrived: &Path) {
        let mut file = File::open(arrived).unwrap();
        let mut context = Sha256::new();
        let (mut block, mut length) = (vec![0; 64 << 10], 0);
        loop {
            match file.read(&mut block).unwrap() {
                0 => break,
                read => {
                    context.update(&block[..read]);
                    length += read as u64;
                }
            }
        }
        assert_eq!(length, self.length, "length of {}", self.path);
        assert_eq!(context.finish(), self.digest, "SHA-256 of {}", self.path);
    }
}

/// The finalizer of SplitMix64.
fn mixed(number: u64) -> [u8; 8] {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (number ^ (number >> 31)).to_le_bytes()
}
