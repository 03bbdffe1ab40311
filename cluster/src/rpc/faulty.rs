//! Faults between any transport and its user: loss, delay, repetition, cuts in one or both
//! directions. Everything random comes from one seed.
//!
//! A lost request or answer looks to the caller like silence: the call ends with its deadline. So a
//! request may have had its effect although its caller was told nothing, as on a real network.
//!
//! It does not: break connections; kill the process (or the memory transport) for that.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::message::{Request, Response};
use super::transport::{Destination, Handler, Lane, Local, RpcError, Transport};

/// The faults of one simulated network; shared by the transports of its nodes.
pub struct Faults {
    state: Mutex<State>,
}

struct State {
    /// What happens to messages; how many there are depends on timing.
    fates: Random,
    /// What the test does; the same for the same seed.
    plan: Random,
    /// Directions that carry nothing: from, to.
    cut: BTreeSet<(Arc<str>, Arc<str>)>,
    /// Connections that are refused although the other side runs: from, to.
    refused: BTreeSet<(Arc<str>, Arc<str>)>,
    weather: Weather,
}

/// What happens to every message that is not cut off.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weather {
    /// Of a thousand messages, how many are lost.
    pub lost_per_mille: u32,
    /// Of a thousand requests, how many arrive twice. Proposals do not: that a call is handed over
    /// once is a promise of every transport; Raft's own messages need no such promise.
    pub repeated_per_mille: u32,
    /// Each message is late by up to this.
    pub delay: Duration,
}

impl Faults {
    pub fn new(seed: u64) -> Arc<Self> {
        let (fates, plan) = (Random(seed), Random(!seed));
        let state = State { fates, plan, cut: BTreeSet::new(), refused: BTreeSet::new(), weather: Weather::default() };
        Arc::new(Self { state: Mutex::new(state) })
    }
    pub fn set_weather(&self, weather: Weather) {
        self.state.lock().weather = weather;
    }
    /// Nothing from `from` reaches `to`.
    pub fn cut(&self, from: &str, to: &str) {
        self.state.lock().cut.insert((from.into(), to.into()));
    }
    /// Connections from `from` to `to` are refused, as a firewall does.
    pub fn refuse(&self, from: &str, to: &str) {
        self.state.lock().refused.insert((from.into(), to.into()));
    }
    /// The members of `side` and all others no longer hear each other.
    pub fn split(&self, side: &[&str], others: &[&str]) {
        for a in side {
            for b in others {
                self.cut(a, b);
                self.cut(b, a);
            }
        }
    }
    /// Ends all faults.
    pub fn heal(&self) {
        let mut state = self.state.lock();
        state.cut.clear();
        state.refused.clear();
        state.weather = Weather::default();
    }
    /// A number below `bound` for the plan of a test: the same sequence for the same seed.
    pub fn random(&self, bound: u64) -> u64 {
        self.state.lock().plan.next() % bound.max(1)
    }

    fn fate(&self, from: &Arc<str>, to: &Arc<str>) -> Fate {
        let mut state = self.state.lock();
        if state.cut.contains(&(from.clone(), to.clone())) {
            return Fate::Lost;
        }
        let weather = state.weather;
        if state.fates.chance(weather.lost_per_mille) {
            return Fate::Lost;
        }
        let longest = weather.delay.as_micros() as u64;
        let delay_us = state.fates.next() % longest.saturating_add(1);
        Fate::Arrives {
            delay: Duration::from_micros(delay_us),
            repeated: state.fates.chance(weather.repeated_per_mille),
        }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn chance(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.next() % 1000 < u64::from(per_mille)
    }
}

enum Fate {
    Lost,
    Arrives { delay: Duration, repeated: bool },
}

pub struct FaultyTransport {
    inner: Arc<dyn Transport>,
    faults: Arc<Faults>,
    address: Arc<str>,
}

impl FaultyTransport {
    /// `address` is this node's own, as others call it.
    pub fn new(inner: Arc<dyn Transport>, faults: Arc<Faults>, address: impl Into<Arc<str>>) -> Self {
        Self { inner, faults, address: address.into() }
    }

    async fn attempt(
        &self,
        to: &Destination,
        lane: Lane,
        request: Request,
        deadline: Duration,
    ) -> Result<Response, RpcError> {
        if self.faults.state.lock().refused.contains(&(self.address.clone(), to.address.clone())) {
            return Err(RpcError::Refused(to.address.clone()));
        }
        let silence = || std::future::pending::<Result<Response, RpcError>>();
        match self.faults.fate(&self.address, &to.address) {
            Fate::Lost => return silence().await,
            Fate::Arrives { delay, repeated } => {
                tokio::time::sleep(delay).await;
                if repeated && !matches!(request, Request::Propose(_)) {
                    let (inner, to, request) = (self.inner.clone(), to.clone(), request.clone());
                    tokio::spawn(async move { inner.call(&to, lane, request, deadline).await });
                }
            }
        }
        let answer = self.inner.call(to, lane, request, deadline).await;
        match self.faults.fate(&to.address, &self.address) {
            // That nobody listens is no message of the other side.
            Fate::Lost if !matches!(answer, Err(RpcError::Closed)) => silence().await,
            Fate::Lost => answer,
            Fate::Arrives { delay, .. } => {
                tokio::time::sleep(delay).await;
                answer
            }
        }
    }
}

#[async_trait]
impl Transport for FaultyTransport {
    fn serve(&self, local: Arc<Local>, handler: Arc<dyn Handler>) {
        self.inner.serve(local, handler);
    }

    async fn call(
        &self,
        to: &Destination,
        lane: Lane,
        request: Request,
        deadline: Duration,
    ) -> Result<Response, RpcError> {
        match tokio::time::timeout(deadline, self.attempt(to, lane, request, deadline)).await {
            Ok(answer) => answer,
            Err(_) => Err(RpcError::Timeout { address: to.address.clone(), after: deadline, sent: true }),
        }
    }

    fn reset(&self) {
        self.inner.reset();
    }

    async fn shutdown(&self) {
        self.inner.shutdown().await;
    }
}
