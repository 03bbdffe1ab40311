//! Why an operation against the server did not work out.

/// Not yet judged: what follows from a server's error depends on what was being done.
#[derive(Debug)]
pub(crate) enum Failure {
    Server(mongodb::error::Error),
    /// Already worded; nothing to retry here.
    Final(thalweg_core::Error),
}

impl From<mongodb::error::Error> for Failure {
    fn from(error: mongodb::error::Error) -> Self {
        Self::Server(error)
    }
}

impl From<thalweg_core::Error> for Failure {
    fn from(error: thalweg_core::Error) -> Self {
        Self::Final(error)
    }
}
