//! Options of the Avro converter.
//!
//! Names and defaults are those of Confluent's converter, so that its configurations can be kept.

use thalweg_config::{Importance, OptionDef, OptionKind, OptionTable, Width};

use super::super::classes::{TYPE, VERSION, option};
use super::access;
use super::subject::SubjectStrategy;

const REGISTRY: &str = "Schema Registry";
const SCHEMAS: &str = "Schemas";
const TLS: &str = "Schema Registry TLS";

const fn registry(name: &'static str, kind: OptionKind, doc: &'static str) -> OptionDef {
    option(name, kind, doc).group(REGISTRY)
}

const fn schemas(name: &'static str, kind: OptionKind, doc: &'static str) -> OptionDef {
    option(name, kind, doc).group(SCHEMAS)
}

const fn tls(name: &'static str, kind: OptionKind, doc: &'static str) -> OptionDef {
    option(name, kind, doc).group(TLS)
}

const fn strategy(name: &'static str, doc: &'static str) -> OptionDef {
    schemas(name, OptionKind::Class, doc)
        .rule(thalweg_config::Rule::Class(SubjectStrategy::CLASSES))
        .default(SubjectStrategy::CLASSES[0])
        .importance(Importance::Medium)
        .width(Width::Long)
}

fn only_false(text: &str) -> Result<(), String> {
    if text.trim().eq_ignore_ascii_case("true") {
        return Err("only false is supported; remove the option".to_owned());
    }
    Ok(())
}

const OWN_RETRIES: &str = "errors.retry.timeout and errors.retry.delay.max.ms of the connector say how long a failed \
                           question is repeated; then the task starts again by itself";
const STORE_TYPE: &str = "what a store is is seen in its content: PEM or PKCS12";

pub(in super::super) static OPTIONS: OptionTable = OptionTable {
    title: "Options of the Avro converter, below key.converter. and value.converter.",
    options: &[
        TYPE,
        registry(
            "schema.registry.url",
            OptionKind::List,
            "Addresses of the schema registry, one or several of one registry; they are tried in turn.",
        )
        .required()
        .check(access::check_urls)
        .importance(Importance::High)
        .width(Width::Long)
        .display("Schema Registry URL"),
        registry(
            "auto.register.schemas",
            OptionKind::Boolean,
            "Register schemas that the registry does not know. false: they must be there already.",
        )
        .default("true")
        .importance(Importance::Medium),
        registry(
            "use.latest.version",
            OptionKind::Boolean,
            "With auto.register.schemas=false: write with the latest version of the subject. Records are refused if \
             it has not the types, names and order of fields of their own schema.",
        )
        .default("false"),
        registry(
            "normalize.schemas",
            OptionKind::Boolean,
            "Let the registry bring schemas into a normal form before it compares them.",
        )
        .default("false"),
        registry(
            "latest.compatibility.strict",
            OptionKind::Boolean,
            "Accepted for compatibility: with use.latest.version the schema of a record is always compared.",
        )
        .default("true")
        .inert("with use.latest.version the schema of a record is always compared"),
        registry("use.schema.id", OptionKind::Int, "Not supported: a fixed id for every schema.")
            .refused("use auto.register.schemas=false with use.latest.version=true, which checks what it uses"),
        registry(
            "basic.auth.credentials.source",
            OptionKind::String,
            "Where user and password for the registry come from: URL (http://user:password@host) or USER_INFO \
             (basic.auth.user.info).",
        )
        .default("URL")
        .one_of(&["URL", "USER_INFO"])
        .importance(Importance::Medium),
        registry("basic.auth.user.info", OptionKind::Password, "user:password for the registry.")
            .aliases(&["schema.registry.basic.auth.user.info"])
            .importance(Importance::Medium),
        registry(
            "bearer.auth.credentials.source",
            OptionKind::String,
            "Where a bearer token for the registry comes from: STATIC_TOKEN (bearer.auth.token). Unset: none is sent.",
        )
        .one_of(&["STATIC_TOKEN"]),
        registry("bearer.auth.token", OptionKind::Password, "Bearer token for the registry."),
        registry("http.connect.timeout.ms", OptionKind::Int, "Longest wait for a connection to the registry.")
            .default("60000")
            .at_least(1),
        registry("http.read.timeout.ms", OptionKind::Int, "Longest wait for an answer of the registry.")
            .default("60000")
            .at_least(1),
        registry("proxy.host", OptionKind::String, "HTTP proxy in front of the registry."),
        registry("proxy.port", OptionKind::Int, "Port of the proxy.")
            .rule(thalweg_config::Rule::Range(Some(1), Some(65535))),
        registry("max.retries", OptionKind::Int, "Accepted for compatibility and without effect.").inert(OWN_RETRIES),
        registry("retries.wait.ms", OptionKind::Int, "Accepted for compatibility and without effect.")
            .inert(OWN_RETRIES),
        registry("retries.max.wait.ms", OptionKind::Int, "Accepted for compatibility and without effect.")
            .inert(OWN_RETRIES),
        tls(
            "schema.registry.ssl.truststore.location",
            OptionKind::String,
            "File with the certificates that are trusted, PEM or PKCS12. Unset: the public authorities.",
        ),
        tls("schema.registry.ssl.truststore.password", OptionKind::Password, "Password of that file, if it is PKCS12."),
        tls(
            "schema.registry.ssl.truststore.type",
            OptionKind::String,
            "Accepted for compatibility: the content decides.",
        )
        .one_of(&["PEM", "PKCS12", "JKS"])
        .inert(STORE_TYPE),
        tls(
            "schema.registry.ssl.truststore.certificates",
            OptionKind::Password,
            "The trusted certificates themselves, in PEM.",
        ),
        tls(
            "schema.registry.ssl.keystore.location",
            OptionKind::String,
            "File with this client's key and certificates, PEM (key not encrypted) or PKCS12.",
        ),
        tls("schema.registry.ssl.keystore.password", OptionKind::Password, "Password of that file, if it is PKCS12."),
        tls(
            "schema.registry.ssl.keystore.type",
            OptionKind::String,
            "Accepted for compatibility: the content decides.",
        )
        .one_of(&["PEM", "PKCS12", "JKS"])
        .inert(STORE_TYPE),
        tls("schema.registry.ssl.keystore.key", OptionKind::Password, "This client's key, in PEM."),
        tls("schema.registry.ssl.keystore.certificate.chain", OptionKind::Password, "Its certificates, in PEM."),
        tls("schema.registry.ssl.key.password", OptionKind::Password, "Not supported: password of a key.")
            .refused("use a PEM key that is not encrypted, readable by this process only, or a PKCS12 store"),
        tls(
            "schema.registry.ssl.endpoint.identification.algorithm",
            OptionKind::String,
            "Host names of the registry's certificates are always checked.",
        )
        .default("https")
        .one_of(&["https"]),
        strategy("key.subject.name.strategy", "Under which name schemas of keys are registered."),
        strategy("value.subject.name.strategy", "Under which name schemas of values are registered."),
        schemas(
            "connect.meta.data",
            OptionKind::Boolean,
            "Write what only Connect's schemas know (names, versions, parameters) into Avro schemas as connect.* \
             properties.",
        )
        .default("true"),
        schemas(
            "scrub.invalid.names",
            OptionKind::Boolean,
            "Make names that are invalid in Avro valid, as Confluent's converter does. false: records with such names \
             are refused.",
        )
        .default("false")
        .importance(Importance::Medium),
        schemas(
            "ignore.default.for.nullables",
            OptionKind::Boolean,
            "Write a null of an optional field as null, even if its schema has a default.",
        )
        .default("false"),
        schemas(
            "schemas.cache.config",
            OptionKind::Int,
            "Schemas whose ids are remembered. Beyond, all are forgotten and asked for again.",
        )
        .default("1000")
        .at_least(1),
        schemas("max.schemas.per.subject", OptionKind::Int, "Accepted for compatibility and without effect.")
            .default("1000")
            .at_least(1)
            .inert("schemas.cache.config bounds what is remembered"),
        schemas(
            "enhanced.avro.schema.support",
            OptionKind::Boolean,
            "Accepted for compatibility: records of change events have nothing for it.",
        )
        .default("false")
        .inert("schemas of change events have no enumerations of Avro's own"),
        schemas(
            "discard.type.doc.default",
            OptionKind::Boolean,
            "Accepted for compatibility: it is about what a sink reads.",
        )
        .default("false")
        .inert("it is for sinks only"),
        schemas("generalized.sum.type.support", OptionKind::Boolean, "Only false is supported.")
            .default("false")
            .check(only_false),
        schemas("allow.optional.map.keys", OptionKind::Boolean, "Only false is supported.")
            .default("false")
            .check(only_false),
        VERSION,
    ],
    open_prefixes: &[],
    cross_checks: &[access::check_login, access::check_stores],
};
