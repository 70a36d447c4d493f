//! Congestion controllers by name.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use godwit::{CongestionAlgorithm, TransportConfig};

use super::run::Trial;

/// A congestion controller to try: one of the library's, or the one that connections have by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Controller(Option<CongestionAlgorithm>);

impl Controller {
    /// CUBIC.
    pub const CUBIC: Controller = Controller(Some(CongestionAlgorithm::Cubic));

    /// Its name: `default`, or that of the algorithm.
    pub fn name(self) -> &'static str {
        self.0.map_or("default", CongestionAlgorithm::name)
    }

    /// A file's name with that of the controller before its extension: `a.cubic.csv`.
    #[must_use]
    pub fn name_into(self, file: &Path) -> PathBuf {
        let extension = file.extension().unwrap_or_default().to_string_lossy();
        file.with_extension(format!("{self}.{extension}").trim_end_matches('.'))
    }

    /// The settings of a trial with it.
    pub fn transport(self) -> TransportConfig {
        let mut transport = Trial::default().transport;
        if let Some(algorithm) = self.0 {
            transport.congestion = algorithm.into();
        }
        transport
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Controller {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name.parse() {
            _ if name == "default" => Ok(Controller::default()),
            Ok(algorithm) => Ok(Controller(Some(algorithm))),
            Err(unknown) => Err(format!("{unknown}, or default")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_many_controllers_are_told_apart() {
        let cubic = Controller::CUBIC;
        assert_eq!(cubic.name_into("a/b.csv".as_ref()), PathBuf::from("a/b.cubic.csv"));
        assert_eq!(cubic.name_into("b".as_ref()), PathBuf::from("b.cubic"));
    }

    #[test]
    fn names_are_found_and_others_refused() {
        for name in ["default", "newreno", "cubic", "bbr", "prague"] {
            assert_eq!(name.parse::<Controller>().map(Controller::name), Ok(name));
        }
        assert!("vegas".parse::<Controller>().unwrap_err().ends_with("bbr, prague, or default"));
        assert_eq!(format!("{:?}", Controller::CUBIC.transport().congestion), "BuiltIn(Cubic)");
    }
}
