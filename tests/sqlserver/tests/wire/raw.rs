//! A client that sends what it is told, without encryption.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const BATCH: u8 = 1;
pub(crate) const RPC: u8 = 3;
pub(crate) const ATTENTION: u8 = 6;
pub(crate) const BULK: u8 = 7;
pub(crate) const TRANSACTION: u8 = 14;

pub(crate) struct RawClient(TcpStream);

pub(crate) fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A request's bytes behind the headers that say its transaction.
pub(crate) fn in_transaction(transaction: u64, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![22, 0, 0, 0, 18, 0, 0, 0, 2, 0];
    bytes.extend(transaction.to_le_bytes());
    bytes.extend([1, 0, 0, 0]);
    bytes.extend(rest);
    bytes
}

impl RawClient {
    /// Logs in as clients without encryption do.
    pub(crate) async fn connect(port: u16) -> Self {
        let mut client = Self(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
        client.send(0x12, 1, &[1, 0, 6, 0, 1, 0xff, 2]).await;
        client.receive().await.unwrap();
        client.send(0x10, 1, &login()).await;
        let answer = client.receive().await.unwrap();
        assert!(answer.contains(&0xad), "{answer:?}");
        client
    }

    pub(crate) async fn send(&mut self, kind: u8, status: u8, bytes: &[u8]) {
        let length = u16::try_from(bytes.len() + 8).unwrap().to_be_bytes();
        let packet = [&[kind, status, length[0], length[1], 0, 0, 1, 0], bytes].concat();
        self.0.write_all(&packet).await.unwrap();
    }

    /// The next message; `None`: the server closed the connection.
    pub(crate) async fn receive(&mut self) -> Option<Vec<u8>> {
        let mut message = Vec::new();
        loop {
            let mut header = [0; 8];
            self.0.read_exact(&mut header).await.ok()?;
            let mut bytes = vec![0; usize::from(u16::from_be_bytes([header[2], header[3]])) - 8];
            self.0.read_exact(&mut bytes).await.ok()?;
            message.extend(bytes);
            if header[1] & 1 != 0 {
                return Some(message);
            }
        }
    }
}

fn login() -> Vec<u8> {
    let texts = ["host", "sa", "sécret&1", "app", "", "", "", "", ""];
    let (mut places, mut data) = (Vec::new(), Vec::new());
    for text in texts {
        places.extend(u16::try_from(94 + data.len()).unwrap().to_le_bytes());
        places.extend(u16::try_from(text.encode_utf16().count()).unwrap().to_le_bytes());
        let secret = text == texts[2];
        data.extend(wide(text).into_iter().map(|b| if secret { b.rotate_left(4) ^ 0xa5 } else { b }));
    }
    let mut bytes = u32::try_from(94 + data.len()).unwrap().to_le_bytes().to_vec();
    bytes.extend(0x7400_0004_u32.to_le_bytes());
    bytes.resize(36, 0);
    bytes.extend(places);
    bytes.resize(94, 0);
    bytes.extend(data);
    bytes
}

/// Number of the error that an answer begins with.
pub(crate) fn error_number(answer: &[u8]) -> Option<u32> {
    (answer[0] == 0xaa).then(|| u32::from_le_bytes(answer[3..7].try_into().unwrap()))
}

/// The statuses of the DONE token that an answer ends with.
pub(crate) fn last_done(answer: &[u8]) -> (u8, u8) {
    let done = &answer[answer.len() - 13..];
    (done[0], done[1])
}
