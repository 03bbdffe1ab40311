//! Real sockets: identity, faults of connections, TLS, and a group over them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tempfile::TempDir;
use thalweg_cluster::consensus::{Consensus, Settings, Timing};
use thalweg_cluster::raft::{ProposeError, Proposer};
use thalweg_cluster::rpc::tcp::TcpTransport;
use thalweg_cluster::rpc::tls::{Tls, TlsFiles};
use thalweg_cluster::rpc::transport::ClusterId;
use thalweg_cluster::rpc::{
    Caller, Destination, Handler, Lane, Local, PeerEvent, Presence, Request, Response, RpcError, Transport,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::sim::{PATIENCE, create};

const SECOND: Duration = Duration::from_secs(1);

/// Answers with what it was sent; pings as a node does.
struct Echo {
    incarnation: u64,
}

#[async_trait]
impl Handler for Echo {
    async fn handle(&self, _caller: Caller, request: Request) -> Response {
        match request {
            Request::Ping { hold_ms } => {
                // Holding the answer is what a ping asks for.
                tokio::time::sleep(Duration::from_millis(hold_ms.into())).await;
                Response::Pong { incarnation: self.incarnation }
            }
            Request::Forward(bytes) => Response::Forwarded(bytes),
            _ => std::future::pending().await,
        }
    }
}

struct Peer {
    transport: Arc<TcpTransport>,
    address: String,
    node: u64,
}

async fn peer(node: u64, tls: Option<Tls>) -> Peer {
    peer_at("localhost:0", node, 1, tls, ClusterId([1; 16])).await
}

async fn peer_at(listen: &str, node: u64, incarnation: u64, tls: Option<Tls>, cluster: ClusterId) -> Peer {
    let listener = TcpListener::bind(listen).await.unwrap();
    let address = format!("localhost:{}", listener.local_addr().unwrap().port());
    let transport = Arc::new(TcpTransport::new(listener, tls));
    let local = Local::new(node, incarnation, address.clone(), Some(cluster));
    local.settle();
    transport.serve(Arc::new(local), Arc::new(Echo { incarnation }));
    Peer { transport, address, node }
}

impl Peer {
    fn to(&self) -> Destination {
        Destination::node(self.node, self.address.as_str())
    }
    async fn echo(&self, to: &Destination, bytes: &[u8]) -> Result<Vec<u8>, RpcError> {
        match self.transport.call(to, Lane::Forward, Request::Forward(bytes.to_vec()), 5 * SECOND).await? {
            Response::Forwarded(bytes) => Ok(bytes),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_share_a_connection_and_find_their_answers() {
    let (a, b) = (peer(1, None).await, peer(2, None).await);
    let to = b.to();
    let calls = (0..500u32).map(|i| {
        let (a, to) = (&a, &to);
        async move {
            let size = if i % 50 == 0 { 200_000 } else { 10 };
            let bytes: Vec<u8> = i.to_le_bytes().into_iter().cycle().take(size).collect();
            assert_eq!(a.echo(to, &bytes).await.unwrap(), bytes);
        }
    });
    futures::future::join_all(calls).await;
    // And towards itself.
    assert_eq!(a.echo(&a.to(), b"me").await.unwrap(), b"me");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_say_what_they_prove() {
    let (a, b) = (peer(1, None).await, peer(2, None).await);
    // A wrong node answers.
    let error = a.echo(&Destination::node(9, b.address.as_str()), b"x").await.unwrap_err();
    assert!(matches!(error, RpcError::NotThere { wanted: 9, found: 2, .. }), "{error}");
    assert!(error.is_unsent() && error.is_gone());
    // No answer in time.
    let start = Instant::now();
    let call = a.transport.call(&b.to(), Lane::Consensus, Request::Probe, Duration::from_millis(300)).await;
    let error = call.unwrap_err();
    assert!(matches!(error, RpcError::Timeout { sent: true, .. }) && !error.is_unsent(), "{error}");
    assert!(start.elapsed() < 5 * SECOND, "{:?}", start.elapsed());
    // Too large for a frame.
    let error = a.echo(&b.to(), &vec![0; 17 << 20]).await.unwrap_err();
    assert!(matches!(error, RpcError::TooLarge { .. }) && error.is_unsent(), "{error}");
    // It ends while a call waits: broken, and then refused.
    let waiting = {
        let (transport, to) = (a.transport.clone(), b.to());
        tokio::spawn(async move { transport.call(&to, Lane::Consensus, Request::Probe, PATIENCE).await })
    };
    a.echo(&b.to(), b"alive").await.unwrap();
    b.transport.shutdown().await;
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(error, RpcError::Broken { .. }) && !error.is_unsent(), "{error}");
    let error = a.echo(&b.to(), b"x").await.unwrap_err();
    assert!(matches!(error, RpcError::Refused(_)) && error.is_unsent() && error.is_gone(), "{error}");
    // A name that leads nowhere proves nothing.
    let error = a.echo(&Destination::address("no-such-host.invalid:1"), b"x").await.unwrap_err();
    assert!(matches!(error, RpcError::Unreachable { .. }) && !error.is_gone(), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_refused_in_words() {
    let a = peer(1, None).await;
    let other = peer_at("localhost:0", 2, 1, None, ClusterId([2; 16])).await;
    let error = other.echo(&a.to(), b"x").await.unwrap_err();
    assert!(error.to_string().contains("belongs to cluster"), "{error}");
    let first = peer_at("localhost:0", 3, 5, None, ClusterId([1; 16])).await;
    first.echo(&a.to(), b"x").await.unwrap();
    let twin = peer_at("localhost:0", 3, 5, None, ClusterId([1; 16])).await;
    let error = twin.echo(&a.to(), b"x").await.unwrap_err();
    assert!(error.to_string().contains(&first.address) && error.to_string().contains("copied"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn noise_on_the_port_harms_nobody() {
    let (a, b) = (peer(1, None).await, peer(2, None).await);
    let noises: [&[u8]; 4] =
        [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", &[0xff; 100], b"THWG\x01\x12\0\0\xff\xff\xff\xff0000", b""];
    for noise in noises {
        let mut socket = TcpStream::connect(&b.address).await.unwrap();
        socket.write_all(noise).await.unwrap();
        if !noise.is_empty() {
            let mut answer = Vec::new();
            // Closed, with or without a reset.
            let _ = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut answer)).await.expect("it is closed");
            assert!(answer.is_empty(), "{answer:?}");
        }
        assert_eq!(a.echo(&b.to(), b"fine").await.unwrap(), b"fine");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_process_is_known_at_once() {
    let (a, b) = (peer(1, None).await, peer(2, None).await);
    let presence = Presence::new(a.transport.clone(), CancellationToken::new());
    let mut events = presence.events();
    presence.watch([b.to()]);
    assert_eq!(events.recv().await.unwrap(), PeerEvent::Back { node: 2, incarnation: 1 });
    assert!(presence.is_there(2) && presence.incarnation(2) == Some(1));
    b.transport.shutdown().await;
    // Straight to certainty, without a time of silence.
    assert_eq!(events.recv().await.unwrap(), PeerEvent::Gone { node: 2 });
    assert!(presence.is_gone(2));
    // It comes back as a later start of itself.
    let port = b.address.rsplit_once(':').unwrap().1;
    let _again = peer_at(&format!("localhost:{port}"), 2, 2, None, ClusterId([1; 16])).await;
    assert_eq!(events.recv().await.unwrap(), PeerEvent::Back { node: 2, incarnation: 2 });
    // Silence is no proof: nothing answers there, but something listens.
    let mute = TcpListener::bind("localhost:0").await.unwrap();
    let address = format!("localhost:{}", mute.local_addr().unwrap().port());
    presence.watch([Destination::node(5, address)]);
    assert_eq!(events.recv().await.unwrap(), PeerEvent::Unreachable { node: 5 });
    assert!(!presence.is_gone(5) && !presence.is_there(5));
}

struct Authority {
    dir: TempDir,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "authority of a test");
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(dir.path().join("ca.pem"), certificate.pem()).unwrap();
        Self { dir, issuer: rcgen::Issuer::new(params, key) }
    }

    fn issue(&self, host: &str) -> TlsFiles {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let path = |end: &str| self.dir.path().join(format!("{host}.{end}"));
        std::fs::write(path("pem"), certificate.pem()).unwrap();
        std::fs::write(path("key"), key.serialize_pem()).unwrap();
        TlsFiles { ca: self.dir.path().join("ca.pem"), certificate: path("pem"), key: path("key") }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_is_mutual_and_checks_the_host() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let good = || Some(Tls::load(&ours.issue("localhost")).unwrap());
    let (a, b) = (peer(1, good()).await, peer(2, good()).await);
    let big = vec![7; 3 << 20];
    assert_eq!(a.echo(&b.to(), &big).await.unwrap(), big);

    // Another authority, the wrong host, or no TLS at all.
    let foreign = peer(3, Some(Tls::load(&theirs.issue("localhost")).unwrap())).await;
    let error = foreign.echo(&b.to(), b"x").await.unwrap_err();
    assert!(matches!(error, RpcError::Unreachable { .. }), "{error}");
    let elsewhere = peer(4, Some(Tls::load(&ours.issue("elsewhere.example")).unwrap())).await;
    let error = a.echo(&elsewhere.to(), b"x").await.unwrap_err();
    assert!(error.to_string().contains("TLS"), "{error}");
    let plain = peer(5, None).await;
    assert!(plain.echo(&b.to(), b"x").await.is_err());
    assert!(a.echo(&plain.to(), b"x").await.is_err());
    // A certificate that is good for a client of ours, shown by nobody's client.
    let trusting = TlsFiles { ca: ours.issue("localhost").ca, ..theirs.issue("localhost") };
    let intruder = peer(6, Some(Tls::load(&trusting).unwrap())).await;
    assert!(intruder.echo(&b.to(), b"x").await.is_err(), "the server asks for a certificate of its authority");
    assert_eq!(a.echo(&b.to(), b"still fine").await.unwrap(), b"still fine");
}

/// Three nodes over real sockets; the leader's process ends.
async fn group(tls: impl Fn() -> Option<Tls>) {
    let dir = TempDir::new().unwrap();
    let mut listeners = Vec::new();
    for _ in 0..3 {
        listeners.push(TcpListener::bind("localhost:0").await.unwrap());
    }
    let seeds: Vec<String> =
        listeners.iter().map(|l| format!("localhost:{}", l.local_addr().unwrap().port())).collect();
    let mut nodes = Vec::new();
    for (i, listener) in listeners.into_iter().enumerate() {
        let settings = Settings {
            address: seeds[i].clone(),
            formation: thalweg_cluster::consensus::Formation::Found { seeds: seeds.clone() },
            timing: Timing::default(),
        };
        let transport = Arc::new(TcpTransport::new(listener, tls()));
        let file = dir.path().join(i.to_string()).join("raft.redb");
        nodes.push(Consensus::start(&file, settings, transport).await.unwrap());
    }
    for node in &nodes {
        let mut standing = node.standing();
        let led = standing.wait_for(|s| s.leader.is_some() && s.members.len() == 3);
        tokio::time::timeout(PATIENCE, led).await.expect("a leader").unwrap();
    }
    for (i, node) in nodes.iter().enumerate() {
        node.propose(create(&format!("c{i}"))).await.unwrap();
    }
    let leader = nodes.iter().position(|n| n.leading().borrow().is_some()).unwrap();
    let leader = nodes.remove(leader);
    let start = Instant::now();
    // Sockets close and the port refuses, as when a process is killed.
    leader.transport().shutdown().await;
    let mut attempts = 1;
    // The outcome of what was on its way to the old leader is not known.
    while let Err(error) = nodes[0].propose(create(&format!("after{attempts}"))).await {
        assert_eq!(error, ProposeError::Unknown);
        attempts += 1;
    }
    println!("from the loss of the leader to the next write: {:?}", start.elapsed());
    leader.shutdown(Duration::ZERO).await;
    nodes[1].confirm(PATIENCE).await.unwrap();
    assert!(nodes[1].view().read().connectors.contains_key(format!("after{attempts}").as_str()));
    for node in nodes {
        node.shutdown(SECOND).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_over_tcp() {
    group(|| None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_over_tls() {
    let authority = Authority::new();
    group(|| Some(Tls::load(&authority.issue("localhost")).unwrap())).await;
}
