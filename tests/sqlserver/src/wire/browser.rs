//! The SQL Server Browser: tells clients the port of an instance.
//!
//! [MC-SQLR] "CLNT_UCAST_INST", "CLNT_UCAST_EX", "CLNT_BCAST_EX" and "SVR_RESP". As the service does, it says
//! nothing to a request that it does not understand or whose instance it does not know.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

const EVERY_INSTANCE: [u8; 2] = [0x02, 0x03];
const ONE_INSTANCE: u8 = 0x04;
const RESPONSE: u8 = 0x05;
/// Bytes of an instance's name in a request, with its end.
const LONGEST_NAME: usize = 33;

/// An instance and where it listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    pub name: String,
    pub port: u16,
}

/// Answers until it is dropped.
pub struct SqlBrowser {
    address: SocketAddr,
    answering: JoinHandle<()>,
}

impl SqlBrowser {
    /// Listens on `address`; port 0: a free one. `server` is the server's name in answers.
    pub async fn start(address: SocketAddr, server: &str, instances: Vec<Instance>) -> Result<Self> {
        let socket = UdpSocket::bind(address)
            .await
            .with_context(|| format!("the SQL Server Browser cannot listen on {address}"))?;
        let address = socket.local_addr()?;
        let answering = tokio::spawn(answer(socket, server.to_owned(), instances));
        Ok(Self { address, answering })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for SqlBrowser {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

async fn answer(socket: UdpSocket, server: String, instances: Vec<Instance>) {
    let mut request = [0; 1 + LONGEST_NAME + 1];
    loop {
        // An error tells that an earlier answer found no client.
        if let Ok((length, client)) = socket.recv_from(&mut request).await
            && let Some(response) = response(&request[..length], &server, &instances)
        {
            let _ = socket.send_to(&response, client).await;
        }
    }
}

fn response(request: &[u8], server: &str, instances: &[Instance]) -> Option<Vec<u8>> {
    let (kind, name) = request.split_first()?;
    let described: String = if EVERY_INSTANCE.contains(kind) {
        instances.iter().map(|i| describe(i, server)).collect()
    } else if *kind == ONE_INSTANCE && name.len() <= LONGEST_NAME {
        // Some clients leave the end of the name away.
        let name = name.split(|b| *b == 0).next()?;
        let known = instances.iter().find(|i| i.name.as_bytes().eq_ignore_ascii_case(name))?;
        describe(known, server)
    } else {
        return None;
    };
    let length = u16::try_from(described.len()).ok()?;
    let mut response = vec![RESPONSE];
    response.extend_from_slice(&length.to_le_bytes());
    response.extend_from_slice(described.as_bytes());
    Some(response)
}

fn describe(Instance { name, port }: &Instance, server: &str) -> String {
    format!("ServerName;{server};InstanceName;{name};IsClustered;No;Version;16.0.1000.6;tcp;{port};;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_found_by_its_name_in_any_case() {
        let instances = [Instance { name: "Sales".into(), port: 50_001 }, Instance { name: "HR".into(), port: 50_002 }];
        let described = "ServerName;host;InstanceName;Sales;IsClustered;No;Version;16.0.1000.6;tcp;50001;;";
        let response_to = |request: &[u8]| response(request, "host", &instances);
        let answer = response_to(b"\x04SALES\0").unwrap();
        assert_eq!(answer[..3], [5, described.len() as u8, 0]);
        assert_eq!(answer[3..], *described.as_bytes());
        assert_eq!(response_to(b"\x04sales").unwrap(), answer);
        assert_eq!(response_to(b"\x03").unwrap().len(), 3 + 2 * described.len() - 3);
        assert_eq!(response_to(b"\x04other\0"), None);
        assert_eq!(response_to(b"\x0f\x01sales\0"), None);
        assert_eq!(response_to(b""), None);
    }
}
