//! The stages behind `$changeStream`: filters of this connector and of the user, oversized events.
//!
//! The filter on names repeats on the server what `filter` checks on arrival, anchored alike, so that
//! nothing crosses the network in vain. Stages that the server applies to every event cost the server
//! a wrapper document in regular-expression mode, because names must be matched as one text.

use bson::{Bson, Document, doc};

use crate::filter::{FilterLists, MatchMode, NameList};
use crate::namespace::Namespace;
use crate::options::{MongoConfig, Oversize, PipelineOrder, SkippedOperations};

/// Everything behind `$changeStream`, in order.
pub fn stages(config: &MongoConfig) -> Vec<Document> {
    let internal = internal(&config.filters, config.events.skipped);
    let user = config.cursor.pipeline.clone();
    let mut stages = Vec::new();
    if let Oversize::Skip(threshold) = config.cursor.oversize {
        stages.push(size(threshold));
    }
    match config.cursor.order {
        PipelineOrder::InternalFirst => stages.extend(internal.into_iter().chain(user)),
        PipelineOrder::UserFirst => stages.extend(user.into_iter().chain(internal)),
        PipelineOrder::UserOnly => stages.extend(user),
    }
    if config.cursor.oversize == Oversize::Split {
        stages.push(doc! {"$changeStreamSplitLargeEvent": {}});
    }
    stages
}

/// Keeps events whose images have at most `threshold` bytes; a missing image has size null, which is
/// less than any number.
fn size(threshold: i32) -> Document {
    let fits = |image: &str| doc! {"$expr": {"$lte": [{"$bsonSize": image}, threshold]}};
    doc! {"$match": {"$and": [fits("$fullDocument"), fits("$fullDocumentBeforeChange")]}}
}

fn internal(lists: &FilterLists, skipped: SkippedOperations) -> Vec<Document> {
    match lists.mode {
        MatchMode::Literal => vec![matching(names(lists), operations("operationType", lists, skipped))],
        MatchMode::Regex => vec![
            doc! {"$replaceRoot": {"newRoot": {
                "namespace": {"$concat": ["$ns.db", ".", "$ns.coll"]},
                "event": "$$ROOT",
            }}},
            matching(names(lists), operations("event.operationType", lists, skipped)),
            // The event itself again: the server insists on its unchanged _id.
            doc! {"$replaceRoot": {"newRoot": "$event"}},
        ],
    }
}

fn matching(names: Option<Document>, operations: Document) -> Document {
    let conditions: Vec<Document> = names.into_iter().chain([operations]).collect();
    doc! {"$match": {"$and": conditions}}
}

/// Signals must arrive whatever operations are skipped.
fn operations(field: &str, lists: &FilterLists, skipped: SkippedOperations) -> Document {
    let kept: Vec<&str> = [
        ("insert", skipped.create),
        ("update", skipped.update),
        ("replace", skipped.update),
        ("delete", skipped.delete),
    ]
    .into_iter()
    .filter(|(_, skipped)| !skipped)
    .map(|(operation, _)| operation)
    .collect();
    let wanted = doc! {field: {"$in": kept}};
    match &lists.signals {
        Some(signals) if skipped.create || skipped.delete => {
            let signals = doc! {"$and": [one(lists.mode, signals), {field: {"$in": ["insert", "delete"]}}]};
            doc! {"$or": [wanted, signals]}
        }
        _ => wanted,
    }
}

/// The filter on names; `None` without any list. The signal collection passes every list, but does not
/// make one.
fn names(lists: &FilterLists) -> Option<Document> {
    let (databases, collections) = match lists.mode {
        MatchMode::Regex => (patterns("event.ns.db", &lists.databases), patterns("namespace", &lists.collections)),
        MatchMode::Literal => {
            let names = |entries: &[String]| entries.iter().map(|e| Bson::from(e.as_str())).collect();
            let pairs = |entries: &[String]| entries.iter().filter_map(|e| Namespace::parse(e)).map(pair).collect();
            (literal("ns.db", &lists.databases, names), literal("ns", &lists.collections, pairs))
        }
    };
    let both: Vec<Document> = databases.into_iter().chain(collections).collect();
    let lists_pass = match <[Document; 1]>::try_from(both) {
        Ok([only]) => only,
        Err(both) if both.is_empty() => return None,
        Err(both) => doc! {"$and": both},
    };
    Some(match &lists.signals {
        None => lists_pass,
        Some(signals) => doc! {"$or": [lists_pass, one(lists.mode, signals)]},
    })
}

fn one(mode: MatchMode, namespace: &Namespace) -> Document {
    match mode {
        MatchMode::Regex => doc! {"namespace": namespace.to_string()},
        MatchMode::Literal => doc! {"ns": pair(namespace.clone())},
    }
}

fn pair(namespace: Namespace) -> Bson {
    Bson::Document(doc! {"db": &*namespace.db, "coll": &*namespace.coll})
}

fn literal(field: &str, list: &NameList, values: impl Fn(&[String]) -> Vec<Bson>) -> Option<Document> {
    match list {
        NameList::All => None,
        NameList::Include(entries) => Some(doc! {field: {"$in": values(entries)}}),
        NameList::Exclude(entries) => Some(doc! {field: {"$nin": values(entries)}}),
    }
}

fn patterns(field: &str, list: &NameList) -> Option<Document> {
    let pattern = match list {
        NameList::All => return None,
        NameList::Include(entries) => format!("^(?:{})$", entries.join("|")),
        NameList::Exclude(entries) => format!("^(?!(?:{})$)", entries.join("|")),
    };
    Some(doc! {field: {"$regex": pattern, "$options": "i"}})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use thalweg_config::Properties;

    use super::*;

    fn of(more: &[(&str, &str)]) -> Vec<Document> {
        let base = [("mongodb.connection.string", "mongodb://h/?replicaSet=rs0"), ("topic.prefix", "shop")];
        let properties: Properties = base.iter().chain(more).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        stages(&MongoConfig::parse(&properties).unwrap())
    }

    /// The condition on names of the configuration; `None` if there is none.
    fn names_of(more: &[(&str, &str)]) -> Option<Bson> {
        let stages = of(more);
        let stage = stages.iter().find(|s| s.contains_key("$match")).unwrap();
        let conditions = stage.get_document("$match").unwrap().get_array("$and").unwrap().clone();
        (conditions.len() == 2).then(|| conditions[0].clone())
    }

    fn all_operations(field: &str) -> Document {
        doc! {field: {"$in": ["insert", "update", "replace", "delete"]}}
    }

    fn wrap() -> Document {
        doc! {"$replaceRoot": {"newRoot": {"namespace": {"$concat": ["$ns.db", ".", "$ns.coll"]}, "event": "$$ROOT"}}}
    }

    #[test]
    fn oversized_events_first_then_names_then_the_user() {
        let stages = of(&[
            ("collection.include.list", "dbit.*"),
            ("cursor.pipeline", r#"[{"$match":{"operationType":"insert"}}]"#),
            ("cursor.oversize.handling.mode", "skip"),
            ("cursor.oversize.skip.threshold", "42"),
        ]);
        assert_eq!(
            stages,
            [
                doc! {"$match": {"$and": [
                    {"$expr": {"$lte": [{"$bsonSize": "$fullDocument"}, 42]}},
                    {"$expr": {"$lte": [{"$bsonSize": "$fullDocumentBeforeChange"}, 42]}},
                ]}},
                wrap(),
                doc! {"$match": {"$and": [
                    {"namespace": {"$regex": "^(?:dbit.*)$", "$options": "i"}},
                    all_operations("event.operationType"),
                ]}},
                doc! {"$replaceRoot": {"newRoot": "$event"}},
                doc! {"$match": {"operationType": "insert"}},
            ]
        );
    }

    #[test]
    fn orders_and_splitting() {
        let user = ("cursor.pipeline", "[{$match: {a: 1}}]");
        let split = ("cursor.oversize.handling.mode", "split");
        let last = doc! {"$changeStreamSplitLargeEvent": {}};
        let literal = ("filters.match.mode", "literal");
        let matched = doc! {"$match": {"$and": [all_operations("operationType")]}};
        let own = doc! {"$match": {"a": 1}};
        for (order, expected) in [
            ("internal_first", vec![matched.clone(), own.clone(), last.clone()]),
            ("user_first", vec![own.clone(), matched, last.clone()]),
            ("user_only", vec![own, last]),
        ] {
            assert_eq!(of(&[user, split, literal, ("cursor.pipeline.order", order)]), expected, "{order}");
        }
        assert_eq!(of(&[("cursor.pipeline.order", "user_only")]), Vec::<Document>::new());
    }

    #[test]
    fn names_in_regular_expression_mode_are_anchored() {
        let regex = |pattern: &str| doc! {"$regex": pattern, "$options": "i"};
        assert_eq!(names_of(&[]), None);
        assert_eq!(
            names_of(&[("database.include.list", "db1, db2"), ("collection.exclude.list", "db1.x")]),
            Some(
                doc! {"$and": [{"event.ns.db": regex("^(?:db1|db2)$")}, {"namespace": regex("^(?!(?:db1.x)$)")}]}
                    .into()
            )
        );
        assert_eq!(
            names_of(&[("database.exclude.list", "db1")]),
            Some(doc! {"event.ns.db": regex("^(?!(?:db1)$)")}.into())
        );
    }

    #[test]
    fn names_in_literal_mode_are_pairs() {
        let literal = ("filters.match.mode", "literal");
        assert_eq!(
            names_of(&[literal, ("database.include.list", "a,b"), ("collection.include.list", "a.x.y")]),
            Some(doc! {"$and": [{"ns.db": {"$in": ["a", "b"]}}, {"ns": {"$in": [{"db": "a", "coll": "x.y"}]}}]}.into())
        );
        assert_eq!(
            names_of(&[literal, ("collection.exclude.list", "a.x")]),
            Some(doc! {"ns": {"$nin": [{"db": "a", "coll": "x"}]}}.into())
        );
    }

    #[test]
    fn mgo_21_t_55_the_signal_collection_passes_but_is_no_list() {
        let mut lists = FilterLists { signals: Namespace::parse("ops.signals"), ..FilterLists::default() };
        assert_eq!(names(&lists), None);
        lists.databases = NameList::Include(vec!["inv".into()]);
        let inv = doc! {"event.ns.db": {"$regex": "^(?:inv)$", "$options": "i"}};
        assert_eq!(names(&lists), Some(doc! {"$or": [inv, {"namespace": "ops.signals"}]}));
        lists.mode = MatchMode::Literal;
        let inv = doc! {"ns.db": {"$in": ["inv"]}};
        assert_eq!(names(&lists), Some(doc! {"$or": [inv, {"ns": {"db": "ops", "coll": "signals"}}]}));
    }

    #[test]
    fn skipped_operations_leave_the_server_but_signals_do_not() {
        let skipped = SkippedOperations { create: true, update: false, delete: false };
        let mut lists = FilterLists::default();
        let wanted = doc! {"event.operationType": {"$in": ["update", "replace", "delete"]}};
        assert_eq!(operations("event.operationType", &lists, skipped), wanted);
        let updates = SkippedOperations { update: true, ..SkippedOperations::default() };
        assert_eq!(operations("t", &lists, updates), doc! {"t": {"$in": ["insert", "delete"]}});
        lists.signals = Namespace::parse("ops.signals");
        let signals =
            doc! {"$and": [{"namespace": "ops.signals"}, {"event.operationType": {"$in": ["insert", "delete"]}}]};
        assert_eq!(operations("event.operationType", &lists, skipped), doc! {"$or": [wanted, signals]});
        assert_eq!(operations("t", &lists, updates), doc! {"t": {"$in": ["insert", "delete"]}});
    }
}
