//! Watches, during a snapshot, whether the server will still hold the snapshot's position when it
//! ends: the change stream that follows starts there.

use std::convert::Infallible;
use std::time::Duration;

use bson::{Document, Timestamp, doc};
use mongodb::Client;
use mongodb::error::Result;
use tracing::warn;

const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Oldest and newest entry of the oplog, in seconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    oldest: u32,
    newest: u32,
}

impl Window {
    /// Whether a position of this age has used up more than half of the window.
    fn is_half_used(self, position: u32) -> bool {
        let span = self.newest.saturating_sub(self.oldest);
        self.newest.saturating_sub(position) > span / 2
    }
}

/// Warns while it is awaited; never resolves. A server whose oplog may not be read is not watched.
pub(crate) async fn watch(client: &Client, position: Option<Timestamp>) -> Infallible {
    if let Some(position) = position {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let Ok(Some(window)) = look(client).await else { break };
            if window.is_half_used(position.time) {
                warn!(
                    window_seconds = window.newest - window.oldest,
                    used_seconds = window.newest.saturating_sub(position.time),
                    "the snapshot has used more than half of the oplog; if it outlasts the oplog, changes are lost: \
                     enlarge the oplog or raise snapshot.max.threads"
                );
            }
        }
    }
    std::future::pending().await
}

async fn look(client: &Client) -> Result<Option<Window>> {
    let oplog = client.database("local").collection::<Document>("oplog.rs");
    let time = async |order: i32| -> Result<Option<u32>> {
        let entry = oplog.find_one(doc! {}).sort(doc! {"$natural": order}).projection(doc! {"ts": 1}).await?;
        Ok(entry.and_then(|e| e.get_timestamp("ts").ok()).map(|ts| ts.time))
    };
    Ok(time(1).await?.zip(time(-1).await?).map(|(oldest, newest)| Window { oldest, newest }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_window() {
        let window = Window { oldest: 1000, newest: 2000 };
        assert!(!window.is_half_used(1500));
        assert!(window.is_half_used(1499));
        // A young oplog, and a position that is newer than what was read a moment ago.
        assert!(!Window { oldest: 1000, newest: 1000 }.is_half_used(1000));
        assert!(!window.is_half_used(2005));
    }
}
