//! Questions to the schema registry.
//!
//! Addresses are tried in turn, beginning with the one that answered last; the next one is tried if one
//! cannot answer now, not if it refuses. Invariants: an answer is read up to a bound; an error names
//! subject, address, status and next step, and no login.
//!
//! It does not: remember answers, or repeat a question.

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Response, StatusCode, Url};
use serde_json::{Value, json};
use thalweg_config::Settings;

use super::access::{Access, Base};
use super::layout::is_same_layout;
use crate::error::{Error, ErrorKind, Phase, Result};

const MEDIA_TYPE: &str = "application/vnd.schemaregistry.v1+json";
const ACCEPTED: &str =
    "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json; q=0.9, application/json; q=0.5";
/// Longest answer that is read.
const ANSWER_LIMIT: usize = 16 * 1024 * 1024;
/// What of an error's text is shown.
const TEXT_LIMIT: usize = 500;
/// Error codes that mean: no such subject, version or schema.
const UNKNOWN: std::ops::RangeInclusive<i64> = 40_401..=40_499;

/// How an id is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Register,
    LookUp,
    /// The latest version, if it has the same layout.
    Latest,
}

pub(super) struct Registry {
    access: Access,
    question: Question,
    normalize: bool,
    /// The address that answered last.
    first: usize,
}

/// Why one address gave no id.
struct Failure {
    error: Error,
    /// Another address may do better.
    passing: bool,
}

impl Registry {
    pub(super) fn from_settings(settings: &Settings, prefix: &str) -> Result<Self> {
        let question = match (settings.bool("auto.register.schemas"), settings.bool("use.latest.version")) {
            (true, _) => Question::Register,
            (false, true) => Question::Latest,
            (false, false) => Question::LookUp,
        };
        let normalize = settings.bool("normalize.schemas");
        Ok(Self { access: Access::from_settings(settings, prefix)?, question, normalize, first: 0 })
    }

    /// The id under which `schema` is to be written.
    pub(super) async fn id(&mut self, subject: &str, schema: &str) -> Result<i32> {
        let count = self.access.bases.len();
        let mut last = None;
        for step in 0..count {
            let at = (self.first + step) % count;
            let Some(base) = self.access.bases.get(at) else { break };
            match self.ask(base, subject, schema).await {
                Ok(id) => {
                    self.first = at;
                    return Ok(id);
                }
                Err(Failure { error, passing: false }) => return Err(error),
                Err(Failure { mut error, passing: true }) => {
                    if let Some(former) = last.take() {
                        let former: Error = former;
                        error.causes.push(format!("before that: {}", former.message));
                    }
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or_else(|| Error::config("no address of a schema registry is set")))
    }

    async fn ask(&self, base: &Base, subject: &str, schema: &str) -> Result<i32, Failure> {
        let place = Place { url: &base.url, subject };
        let mut url = base.url.clone();
        {
            let Ok(mut path) = url.path_segments_mut() else {
                return Err(place.wrong("is no address with a path"));
            };
            path.pop_if_empty().extend(["subjects", subject]);
            match self.question {
                Question::Register => path.push("versions"),
                Question::LookUp => &mut path,
                Question::Latest => path.extend(["versions", "latest"]),
            };
        }
        let request = match self.question {
            Question::Latest => self.access.client.get(url),
            Question::Register | Question::LookUp => {
                if self.normalize {
                    url.query_pairs_mut().append_pair("normalize", "true");
                }
                let body = json!({"schema": schema}).to_string();
                self.access.client.post(url).header(CONTENT_TYPE, MEDIA_TYPE).body(body)
            }
        };
        let sent = base.authorized(request.header(ACCEPT, ACCEPTED)).send().await;
        let response = sent.map_err(|e| place.unreachable(e))?;
        let status = response.status();
        let body = body(response).await.map_err(|e| match e {
            Some(e) => place.unreachable(e),
            None => place.nonsense(status, "its answer is too long"),
        })?;
        let answer = serde_json::from_slice::<Value>(&body).ok();
        if !status.is_success() {
            return Err(place.refused(status, answer.as_ref(), self.question));
        }
        let Some(answer) = answer else { return Err(place.nonsense(status, "its answer is no JSON")) };
        let id = answer.get("id").and_then(Value::as_i64).and_then(|id| i32::try_from(id).ok());
        let Some(id) = id.filter(|id| *id >= 0) else {
            return Err(place.nonsense(status, "its answer has no id"));
        };
        if self.question == Question::Latest {
            place.compare(&answer, schema)?;
        }
        Ok(id)
    }
}

/// The body, bounded. `None`: it is longer.
async fn body(mut response: Response) -> Result<Vec<u8>, Option<reqwest::Error>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Some)? {
        if body.len() + chunk.len() > ANSWER_LIMIT {
            return Err(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// What every error says.
struct Place<'a> {
    url: &'a Url,
    subject: &'a str,
}

impl Place<'_> {
    fn error(&self, kind: ErrorKind, what: &str, advice: &str) -> Error {
        let Self { url, subject } = self;
        Error::new(kind, Phase::Convert, format!("schema registry {url}, subject {subject}: {what}")).advise(advice)
    }

    fn unreachable(&self, error: reqwest::Error) -> Failure {
        const ADVICE: &str = "check that the schema registry is up and can be reached from this node \
                              (schema.registry.url); the task retries by itself";
        let kind = if error.is_timeout() { ErrorKind::Timeout } else { ErrorKind::Connect };
        let what = if error.is_timeout() { "no answer in time" } else { "it cannot be reached" };
        Failure { error: self.error(kind, what, ADVICE).because(&error.without_url()), passing: true }
    }

    fn nonsense(&self, status: StatusCode, what: &str) -> Failure {
        const ADVICE: &str = "check that schema.registry.url is the address of a schema registry, with its path if it \
                              has one; the task retries by itself";
        let what = format!("HTTP {}, but {what}", status.as_u16());
        Failure { error: self.error(ErrorKind::Connect, &what, ADVICE), passing: true }
    }

    fn wrong(&self, what: &str) -> Failure {
        const ADVICE: &str = "correct schema.registry.url; some registries have a path in it, e.g. /apis/ccompat/v7";
        Failure { error: self.error(ErrorKind::Config, what, ADVICE), passing: false }
    }

    fn refused(&self, status: StatusCode, answer: Option<&Value>, question: Question) -> Failure {
        let code = answer.and_then(|a| a.get("error_code")).and_then(Value::as_i64).unwrap_or(0);
        let text = answer.and_then(|a| a.get("message")).and_then(Value::as_str).unwrap_or_default();
        let mut what = format!("HTTP {}", status.as_u16());
        if !text.is_empty() {
            what.push_str(": ");
            what.push_str(&text[..text.floor_char_boundary(TEXT_LIMIT)]);
        }
        let value = |advice| Failure { error: self.error(ErrorKind::ValueInvalid, &what, advice), passing: false };
        match status.as_u16() {
            401 => {
                let advice = "check user and password, or the token, for the schema registry (basic.auth.*, \
                              bearer.auth.*), then restart the task";
                Failure { error: self.error(ErrorKind::Auth, &what, advice), passing: false }
            }
            403 => {
                let advice = "give the user the right to read and, with auto.register.schemas, to write this subject, \
                              then restart the task";
                Failure { error: self.error(ErrorKind::Permission, &what, advice), passing: false }
            }
            404 if UNKNOWN.contains(&code) && question != Question::Register => {
                value("register the schema under this subject, or set auto.register.schemas=true")
            }
            409 => value(
                "the schema is not compatible with the subject's earlier versions: change the subject's compatibility \
                 level, or use another topic; or set errors.tolerance=all to leave such records out",
            ),
            400 | 413 | 422 => value(
                "the registry does not accept this schema: see its message; or set errors.tolerance=all to leave such \
                 records out",
            ),
            408 | 429 | 500.. => {
                let advice = "look at the state and the log of the schema registry; the task retries by itself";
                Failure { error: self.error(ErrorKind::Connect, &what, advice), passing: true }
            }
            _ => self.wrong(&what),
        }
    }

    /// The latest version must have the layout of the record's own schema.
    fn compare(&self, answer: &Value, schema: &str) -> Result<(), Failure> {
        let failed = |what: String| {
            let advice = "register this schema as the latest version, or set use.latest.version=false or \
                          auto.register.schemas=true";
            Failure { error: self.error(ErrorKind::ValueInvalid, &what, advice), passing: false }
        };
        let latest = answer.get("schema").and_then(Value::as_str).unwrap_or_default();
        match is_same_layout(schema, latest) {
            Ok(true) => Ok(()),
            Ok(false) => Err(failed(
                "the latest version differs from the record's schema in types, names or order of fields".to_owned(),
            )),
            Err(why) => Err(failed(format!("the latest version cannot be used: {why}"))),
        }
    }
}
