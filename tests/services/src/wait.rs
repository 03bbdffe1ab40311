//! Waiting on state: a condition is polled until it holds or the deadline passes.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Between two looks at a state that has no notification (another process, a REST answer).
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Polls `look` until it yields a value. `what` names the awaited state in the error.
pub async fn until<T, F, Fut>(what: &str, deadline: Duration, mut look: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<Option<T>>>,
{
    let end = Instant::now() + deadline;
    loop {
        let last = look().await;
        match last {
            Ok(Some(value)) => return Ok(value),
            Ok(None) if Instant::now() < end => {}
            Err(_) if Instant::now() < end => {}
            Ok(None) => bail!("not within {deadline:?}: {what}"),
            Err(e) => return Err(e.context(format!("not within {deadline:?}: {what}"))),
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
