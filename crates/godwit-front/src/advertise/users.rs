//! Who is one user, for a staged roll-out and for reports that must not take one user's requests for many users'.
//!
//! A user is told by the session cookie that the site itself has set, if the request brings one of the usual kind;
//! else by the client's network (IPv4 /24, IPv6 /48) and its `User-Agent`. That is stable for most users over days,
//! and honest about what it is: people behind one address with the same browser are one user, and somebody who moves
//! to another network without a cookie is another. What is logged and compared is a keyed hash; the key lies in the
//! data folder, so that a restart does not deal the users anew, and says nothing to whoever reads the log.

use std::hash::Hasher;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use godwit_body::ClientNetwork;
use http::HeaderMap;
use http::header::{COOKIE, USER_AGENT};
use siphasher::sip::SipHasher13;

const KEY_LEN: usize = 16;
const KEY_FILE: &str = "rollout.key";
/// Cookies that stay the same for one user: identifiers of well-known analytics and the names of sessions that
/// frameworks give by default. The first that a request has, in this order, counts.
const COOKIES: [&str; 12] = [
    "uid",
    "user_id",
    "visitor_id",
    "_ga",
    "_pk_id",
    "sessionid",
    "session_id",
    "session",
    "sid",
    "connect.sid",
    "PHPSESSID",
    "JSESSIONID",
];

/// A user as a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    hash: u64,
    certain: bool,
}

impl User {
    /// The hash: the same for the same user, at this server.
    pub(crate) fn hash(self) -> u64 {
        self.hash
    }

    /// Whether a cookie told the user, which is the same on every network.
    pub(super) fn is_certain(self) -> bool {
        self.certain
    }

    /// Whether the user is among the first `part` (0 to 1) of all. Who is among few is also among more.
    pub(super) fn is_in(self, part: f64) -> bool {
        // 53 bits are what a float holds.
        ((self.hash >> 11) as f64) < part * (1_u64 << 53) as f64
    }
}

/// The key of the hashes.
#[derive(Clone)]
pub(crate) struct UserKey([u8; KEY_LEN]);

impl UserKey {
    /// The key in `folder`, made now if there is none. If the folder cannot be used, one that lasts as long as the
    /// program, and why.
    pub(crate) fn load(folder: Option<&Path>) -> (UserKey, Option<io::Error>) {
        let kept = match folder {
            Some(folder) => Self::load_from(folder),
            None => Err(io::Error::new(io::ErrorKind::NotFound, "there is no data folder")),
        };
        match kept {
            Ok(key) => (key, None),
            Err(error) => (Self::random(), Some(error)),
        }
    }

    fn load_from(folder: &Path) -> io::Result<UserKey> {
        let path = folder.join(KEY_FILE);
        match std::fs::read(&path) {
            Ok(bytes) => match bytes.first_chunk() {
                Some(key) => return Ok(UserKey(*key)),
                None => tracing::warn!(path = %path.display(), "too short for a key: it is made anew"),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let key = Self::random();
        std::fs::create_dir_all(folder)?;
        // Written beside and moved: nobody reads half a key.
        let beside = folder.join(format!("{KEY_FILE}.{}", std::process::id()));
        write_private(&beside, &key.0)?;
        std::fs::rename(&beside, &path)?;
        Ok(key)
    }

    /// A key that nobody else has.
    pub(crate) fn random() -> UserKey {
        let mut key = [0; KEY_LEN];
        // It fails only where the operating system has no random numbers; then nothing here works.
        let _ = godwit_tls::fill_random(&mut key);
        UserKey(key)
    }

    /// Who sends a request with these headers from `address`.
    pub(super) fn user(&self, address: IpAddr, headers: &HeaderMap) -> User {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        let cookie = cookie(headers);
        match cookie {
            Some((name, value)) => {
                hasher.write(name.as_bytes());
                hasher.write_u8(0xff);
                hasher.write(value.as_bytes());
            }
            None => {
                write_address(&mut hasher, ClientNetwork::prefix(address));
                hasher.write(headers.get(USER_AGENT).map_or(b"", |agent| agent.as_bytes()));
            }
        }
        User { hash: hasher.finish(), certain: cookie.is_some() }
    }

    /// A client's address as a hash; for IPv6 only the network that one customer has (/64).
    pub(super) fn address(&self, address: IpAddr) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        let address = match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::from((address.to_bits() >> 64 << 64).to_be_bytes()),
            address => address,
        };
        write_address(&mut hasher, address);
        hasher.finish()
    }
}

impl std::fmt::Debug for UserKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("UserKey")
    }
}

/// The cookie that tells the user.
fn cookie(headers: &HeaderMap) -> Option<(&'static str, &str)> {
    let all = || {
        let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='))
    };
    headers.contains_key(COOKIE).then(|| {
        COOKIES.iter().find_map(|wanted| {
            let found = all().find(|(name, value)| name == wanted && !value.is_empty());
            found.map(|(_, value)| (*wanted, value))
        })
    })?
}

fn write_address(hasher: &mut SipHasher13, address: IpAddr) {
    match address {
        IpAddr::V4(address) => hasher.write(&address.octets()),
        IpAddr::V6(address) => hasher.write(&address.octets()),
    }
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(http::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_user_is_the_same_in_the_same_network_and_with_the_same_cookie() {
        let key = UserKey([7; 16]);
        let user = |address: &str, pairs: &[(http::HeaderName, &str)]| {
            key.user(address.parse().unwrap(), &headers(pairs))
        };
        let (firefox, chrome) = ([(USER_AGENT, "firefox")], [(USER_AGENT, "chrome")]);
        assert_eq!(user("192.0.2.1", &firefox), user("192.0.2.200", &firefox));
        assert_eq!(user("192.0.2.1", &firefox), user("::ffff:192.0.2.9", &firefox));
        assert_ne!(user("192.0.2.1", &firefox), user("192.0.2.1", &chrome));
        assert_ne!(user("192.0.2.1", &firefox), user("192.0.3.1", &firefox));
        let cookie = [(USER_AGENT, "firefox"), (COOKIE, "theme=dark; sid=abc")];
        let other_agent = [(USER_AGENT, "chrome"), (COOKIE, "lang=de"), (COOKIE, "sid=abc")];
        assert_eq!(user("192.0.2.1", &cookie), user("2001:db8::1", &other_agent));
        assert!(user("192.0.2.1", &cookie).is_certain() && !user("192.0.2.1", &firefox).is_certain());
        let unknown = [(USER_AGENT, "firefox"), (COOKIE, "theme=dark; sid=")];
        assert_eq!(user("192.0.2.1", &unknown), user("192.0.2.1", &firefox));
        assert_ne!(
            UserKey([8; 16]).user("192.0.2.1".parse().unwrap(), &headers(&firefox)),
            user("192.0.2.1", &firefox)
        );
    }

    #[test]
    fn the_part_is_what_was_asked_for_and_grows_by_joining() {
        let key = UserKey([7; 16]);
        let users: Vec<User> = (0..20_000_u32)
            .map(|number| key.user(std::net::Ipv4Addr::from_bits(number << 8).into(), &HeaderMap::new()))
            .collect();
        let count = |part: f64| users.iter().filter(|user| user.is_in(part)).count() as f64;
        for part in [0.05, 0.2, 0.5] {
            let expected = 20_000.0 * part;
            assert!((count(part) - expected).abs() < 5.0 * expected.sqrt(), "{part}: {}", count(part));
        }
        assert!((count(0.0), count(1.0)) == (0.0, 20_000.0));
        assert!(users.iter().all(|user| !user.is_in(0.05) || user.is_in(0.2)));
    }

    #[test]
    fn the_key_survives_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("new");
        let (first, problem) = UserKey::load(Some(&inner));
        assert!(problem.is_none());
        assert_eq!(UserKey::load(Some(&inner)).0.0, first.0);
        std::fs::write(inner.join(KEY_FILE), b"short").unwrap();
        let (third, problem) = UserKey::load(Some(&inner));
        assert!(problem.is_none() && third.0 != first.0);
        let (_, problem) = UserKey::load(Some(&inner.join(KEY_FILE).join("below a file")));
        assert!(problem.is_some());
    }
}
