//! Listens in on a connection.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// What a client sent, as it was on the wire.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<u8>>>);

impl Heard {
    pub(crate) async fn contains(&self, text: &str) -> bool {
        let needle: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        self.0.lock().await.windows(needle.len()).any(|w| w == needle)
    }
}

/// Forwards one connection to `port`; says its own port.
pub(crate) async fn tap(port: u16) -> (u16, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    let heard = Heard::default();
    let noted = heard.clone();
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let answers = tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
            noted.0.lock().await.extend_from_slice(&buffer[..read]);
            if to_server.write_all(&buffer[..read]).await.is_err() {
                break;
            }
        }
        drop(to_server);
        let _ = answers.await;
    });
    (own, heard)
}
