#![allow(clippy::unwrap_used, clippy::panic)]
use bson::{Bson, Document, RawDocumentBuf, doc};
use proptest::prelude::*;

use super::*;

/// The rules of `d.c`.
fn rules(excludes: &str, renames: &str) -> FieldRules {
    FieldSelector::parse(excludes, renames).unwrap().rules(&Namespace::new("d", "c")).unwrap()
}

fn bytes(document: &Document) -> Vec<u8> {
    RawDocumentBuf::try_from(document).unwrap().into_bytes()
}

/// Bytes compare the order of fields too.
fn assert_same(found: &[u8], expected: &Document) {
    let shown = RawDocumentBuf::from_bytes(found.to_vec()).and_then(|raw| Document::try_from(&raw));
    assert!(found == bytes(expected), "{shown:?} is not {expected:?}");
}

#[track_caller]
fn document(rules: &FieldRules, before: Document, after: Document) {
    let found = rules.document(&bytes(&before)).unwrap();
    assert_same(&found.unwrap_or_else(|| bytes(&before)), &after);
}

#[track_caller]
fn updated(rules: &FieldRules, before: Document, after: Document) {
    let found = rules.updated(&bytes(&before)).unwrap();
    assert_same(&found.unwrap_or_else(|| bytes(&before)), &after);
}

fn told(rules: &FieldRules, fields: &[&str]) -> Vec<String> {
    fields.iter().filter_map(|field| rules.told((*field).to_owned())).collect()
}

#[test]
fn collections_without_an_entry_have_no_rules() {
    let selector = FieldSelector::parse("*.c1.name, inv.a.p.q-r", "inv.a.x:y").unwrap();
    let count = |db: &str, coll: &str| selector.rules(&Namespace::new(db, coll)).map_or(0, |r| r.rules.len());
    assert_eq!((count("inv", "a"), count("INV", "A"), count("any", "c1"), count("inv", "c1")), (2, 2, 1, 1));
    assert_eq!((count("any", "c2"), count("inv", "a.b"), count("inv2", "a")), (0, 0, 0));
    assert!(FieldSelector::parse("", "").unwrap().rules(&Namespace::new("inv", "a")).is_none());
}

#[test]
fn mgo_23_excluded_from_documents_and_their_arrays() {
    let rules = rules("*.c.name,*.c.addr.no", "");
    document(
        &rules,
        doc! {"_id": 1, "name": "S", "addr": [{"no": 1, "st": "x"}, {"no": 2}, 7]},
        doc! {"_id": 1, "addr": [{"st": "x"}, {}, 7]},
    );
    document(&rules, doc! {"addr": {"no": {"no": 1}, "name": 2}}, doc! {"addr": {"name": 2}});
    // Names count with their case and as a whole.
    let other = doc! {"Name": 1, "names": 2, "addr": {"nos": 1, "x": {"no": 1}}, "x": {"name": 1}};
    document(&rules, other.clone(), other);
}

#[test]
fn what_no_rule_concerns_is_not_copied() {
    let rules = rules("d.c.a.b", "d.c.x:y");
    for untouched in [doc! {}, doc! {"_id": 1}, doc! {"a": 5}, doc! {"y": 1, "b": 2}] {
        assert_eq!(rules.document(&bytes(&untouched)), Ok(None), "{untouched}");
        assert_eq!(rules.updated(&bytes(&untouched)), Ok(None), "{untouched}");
    }
}

#[test]
fn t_51_arrays_of_arrays_are_left_alone() {
    let rules = rules("d.c.a.b", "d.c.a.x:y");
    document(&rules, doc! {"a": [[{"b": 1, "x": 2}], {"b": 1}]}, doc! {"a": [[{"b": 1, "x": 2}], {}]});
    let change = doc! {"a.0": [{"b": 1, "x": 2}], "a.0.0.b": 3, "a.1.2.x": 4};
    updated(&rules, change.clone(), change);
}

#[test]
fn mgo_23_excluded_from_updated_fields() {
    let of_array = rules("d.c.name,d.c.addr.no", "");
    updated(&of_array, doc! {"addr.0.no": 5, "name": "T", "k": 1}, doc! {"k": 1});
    updated(&of_array, doc! {"addr": {"no": 1, "st": "y"}}, doc! {"addr": {"st": "y"}});
    updated(&of_array, doc! {"addr": [{"no": 1}, 5], "name.first": 1}, doc! {"addr": [{}, 5]});
    updated(&of_array, doc! {"addr.no.deep.1": 5, "addr.3.no.deep": 5, "addr.nob": 1}, doc! {"addr.nob": 1});
    updated(&of_array, doc! {"name": 1}, doc! {});
    // A rule concerns every element that an update names.
    updated(
        &of_array,
        doc! {"addr.0": {"no": 1, "a": 1}, "addr.1": {"no": 2}, "addr.2.no": 3},
        doc! {"addr.0": {"a": 1}, "addr.1": {}},
    );
}

#[test]
fn fields_with_numbers_for_names() {
    let rules = rules("d.c.year.2024,d.c.month.7.days", "");
    document(&rules, doc! {"year": {"2023": 1, "2024": 2}}, doc! {"year": {"2023": 1}});
    updated(&rules, doc! {"year.2023": 1, "year.2024": 2, "year.2024.sum": 3}, doc! {"year.2023": 1});
    updated(&rules, doc! {"month.7": {"days": 31, "n": 1}}, doc! {"month.7": {"n": 1}});
}

#[test]
fn t_49_a_parent_of_an_excluded_field_is_not_told_but_a_child_is() {
    let rules = rules("d.c.a.b", "");
    assert_eq!(told(&rules, &["a", "a.b", "a.0.b", "a.b.c", "a.c", "ab", "b"]), ["a.b.c", "a.c", "ab", "b"]);
}

#[test]
fn renamed_fields_move_to_the_end_of_their_document() {
    let rules = rules("", "d.c.addr.no:nr,d.c.a:alpha");
    document(
        &rules,
        doc! {"_id": 1, "a": 1, "addr": {"no": 1, "st": "x"}, "z": 1},
        doc! {"_id": 1, "addr": {"st": "x", "nr": 1}, "z": 1, "alpha": 1},
    );
    document(&rules, doc! {"addr": [{"no": 1, "st": 2}, {}]}, doc! {"addr": [{"st": 2, "nr": 1}, {}]});
    updated(&rules, doc! {"addr.0.no": 5, "k": 1}, doc! {"k": 1, "addr.0.nr": 5});
    updated(&rules, doc! {"addr.no.x": 5, "a.3": 1}, doc! {"addr.nr.x": 5, "alpha.3": 1});
    updated(&rules, doc! {"addr": {"no": 1, "st": "y"}}, doc! {"addr": {"st": "y", "nr": 1}});
    assert_eq!(told(&rules, &["addr.no", "addr", "a", "addr.1.no.x"]), ["addr.nr", "addr", "alpha", "addr.1.nr.x"]);
}

#[test]
fn later_entries_see_what_earlier_ones_left() {
    let chain = rules("", "d.c.a:b,d.c.b:d");
    document(&chain, doc! {"a": 1, "x": 2}, doc! {"x": 2, "d": 1});
    updated(&chain, doc! {"a.0": 1, "x": 2}, doc! {"x": 2, "d.0": 1});
    // Names alone follow the first entry.
    assert_eq!(told(&chain, &["a", "b"]), ["b", "d"]);
    let parent = rules("", "d.c.a.k:m,d.c.a:z,d.c.z.m:n");
    document(&parent, doc! {"a": {"k": 1, "l": 2}}, doc! {"z": {"l": 2, "n": 1}});
    updated(&parent, doc! {"a.k": 1, "a.l": {"k": 2}}, doc! {"z.l": {"k": 2}, "z.n": 1});
    updated(&parent, doc! {"a": {"k": 1, "l": 2}}, doc! {"z": {"l": 2, "n": 1}});
    // Excludes come first, so the name is free and the old one is gone.
    let both = rules("d.c.b,d.c.x", "d.c.a:b,d.c.x:y");
    document(&both, doc! {"a": 1, "b": 2, "x": 3}, doc! {"b": 1});
}

#[test]
fn t_50_a_name_that_is_taken_fails() {
    let rules = rules("", "d.c.a:b,d.c.in.x:y");
    let fails = |result: Result<Option<Vec<u8>>, FieldError>, name: &str| {
        assert_eq!(result, Err(FieldError::Taken(name.into())));
    };
    fails(rules.document(&bytes(&doc! {"a": 1, "b": 2})), "b");
    fails(rules.document(&bytes(&doc! {"in": [{"x": 1}, {"x": 1, "y": 2}]})), "y");
    fails(rules.updated(&bytes(&doc! {"in.0.y": 1, "in.0.x": 2})), "in.0.y");
    fails(rules.updated(&bytes(&doc! {"in": {"x": 1, "y": 2}})), "y");
    let text = FieldError::Taken("b".into()).to_string();
    assert!(text.starts_with("Document already contains field : b") && text.contains("field.renames"), "{text}");
    // Without the old field nothing is renamed.
    document(&rules, doc! {"b": 2}, doc! {"b": 2});
    updated(&rules, doc! {"in.0.y": 1, "in.1.x": 2}, doc! {"in.0.y": 1, "in.1.y": 2});
}

#[test]
fn the_id_of_a_document_is_a_field_like_others() {
    document(&rules("d.c._id", ""), doc! {"_id": 1, "a": 2}, doc! {"a": 2});
    document(&rules("", "d.c._id:id"), doc! {"_id": 1, "a": 2}, doc! {"a": 2, "id": 1});
    document(&rules("d.c._id.k", ""), doc! {"_id": {"k": 1, "l": 2}}, doc! {"_id": {"l": 2}});
}

/// A document from elements as bytes.
fn raw(elements: &[&[u8]]) -> Vec<u8> {
    let body = elements.concat();
    let length = i32::try_from(body.len() + 5).unwrap().to_le_bytes();
    [&length, body.as_slice(), &[0]].concat()
}

#[test]
fn of_fields_with_one_name_the_last_counts() {
    let twice = raw(&[b"\x08a\0\x00", b"\x0Ax\0", b"\x08a\0\x01"]);
    assert_eq!(rules("d.c.a", "").document(&twice), Ok(Some(raw(&[b"\x0Ax\0"]))));
    assert_eq!(rules("", "d.c.a:z").document(&twice), Ok(Some(raw(&[b"\x0Ax\0", b"\x08z\0\x01"]))));
}

#[test]
fn damaged_bytes_are_errors_where_rules_look() {
    let rules = rules("d.c.a.b", "");
    let inner = raw(&[b"\x03a\0", &raw(&[b"\x02b\0\xFF\0\0\0x\0"])]);
    assert!(matches!(rules.document(&inner), Err(FieldError::Malformed(_))));
    assert!(matches!(rules.document(b"\x05\0\0"), Err(FieldError::Malformed(_))));
}

#[test]
fn an_update_of_a_whole_array_takes_no_quadratic_time() {
    let rules = rules("", "d.c.list.k:key,d.c.list.m:n");
    let mut change = Document::new();
    let mut expected = Document::new();
    for i in 0..20_000 {
        change.insert(format!("list.{i}.k"), i);
        expected.insert(format!("list.{i}.key"), i);
    }
    updated(&rules, change, expected);
}

#[test]
fn deep_nesting_is_bounded_by_the_path() {
    let mut deep = doc! {"a": 1};
    for _ in 0..150 {
        deep = doc! {"a": deep};
    }
    let path = vec!["a"; 151].join(".");
    let found = rules(&format!("d.c.{path}"), "").document(&bytes(&deep)).unwrap().unwrap();
    assert_eq!(found.len(), bytes(&deep).len() - 7);
    let nested = (0..300).fold(raw(&[]), |inner, _| raw(&[b"\x03a\0", &inner]));
    let path = vec!["a"; 400].join(".");
    assert!(matches!(rules(&format!("d.c.{path}"), "").document(&nested), Err(FieldError::Malformed(_))));
}

/// The rules as they are told, one entry after the other over a tree.
mod model {
    use super::*;

    #[derive(Debug, Clone)]
    pub(super) struct Entry {
        pub(super) path: Vec<String>,
        pub(super) name: Option<String>,
    }

    #[derive(Debug)]
    pub(super) struct Taken;

    pub(super) fn document(document: &mut Document, path: &[String], name: Option<&str>) -> Result<(), Taken> {
        match path {
            [] => Ok(()),
            [last] => match (document.contains_key(last), name) {
                (true, Some(name)) if document.contains_key(name) => Err(Taken),
                (true, name) => {
                    let value = document.remove(last).unwrap();
                    if let Some(name) = name {
                        document.insert(name, value);
                    }
                    Ok(())
                }
                (false, _) => Ok(()),
            },
            [first, rest @ ..] => document.get_mut(first).map_or(Ok(()), |value| inside(value, rest, name)),
        }
    }

    fn inside(value: &mut Bson, path: &[String], name: Option<&str>) -> Result<(), Taken> {
        match value {
            Bson::Document(inner) => document(inner, path, name),
            Bson::Array(elements) => elements.iter_mut().try_for_each(|element| match element {
                Bson::Document(inner) => document(inner, path, name),
                _ => Ok(()),
            }),
            _ => Ok(()),
        }
    }

    fn is_number(part: &str) -> bool {
        part.bytes().all(|b| b.is_ascii_digit())
    }

    pub(super) fn updated(fields: &mut Document, path: &[String], name: Option<&str>) -> Result<(), Taken> {
        for key in fields.keys().cloned().collect::<Vec<_>>() {
            let parts: Vec<&str> = key.split('.').collect();
            // A number behind a name is an element of an array; one behind a number fits no name.
            let is_element = |i: usize| i > 0 && is_number(parts[i]) && !is_number(parts[i - 1]);
            let named: Vec<(usize, &str)> =
                parts.iter().copied().enumerate().filter(|(i, _)| !is_element(*i)).collect();
            if named.iter().zip(path).any(|((_, part), wanted)| part != wanted) {
                continue;
            }
            if named.len() < path.len() {
                let value = fields.get_mut(&key).unwrap();
                if !(is_number(parts[parts.len() - 1]) && matches!(value, Bson::Array(_))) {
                    inside(value, &path[named.len()..], name)?;
                }
                continue;
            }
            let renamed = name.map(|name| {
                let mut parts = parts.clone();
                parts[named[path.len() - 1].0] = name;
                parts.join(".")
            });
            if renamed.as_ref().is_some_and(|renamed| fields.contains_key(renamed)) {
                return Err(Taken);
            }
            let value = fields.remove(&key).unwrap();
            if let Some(renamed) = renamed {
                fields.insert(renamed, value);
            }
        }
        Ok(())
    }
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Bson> {
    let leaf = prop_oneof![any::<i32>().prop_map(Bson::from), "[x-z]{0,3}".prop_map(Bson::from), Just(Bson::Null)];
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            3 => prop::collection::vec((name(), inner.clone()), 0..4)
                .prop_map(|fields| Bson::Document(fields.into_iter().collect())),
            1 => prop::collection::vec(inner, 0..4).prop_map(Bson::Array),
        ]
    })
}

fn a_document() -> impl Strategy<Value = Document> {
    prop::collection::vec((name(), value()), 0..4).prop_map(|fields| fields.into_iter().collect())
}

fn an_update() -> impl Strategy<Value = Document> {
    let part = prop_oneof![3 => name(), 1 => "[01]"];
    let key = (name(), prop::collection::vec(part, 0..4));
    let key = key.prop_map(|(first, more)| [vec![first], more].concat().join("."));
    prop::collection::vec((key, value()), 0..5).prop_map(|fields| fields.into_iter().collect())
}

fn an_entry(name: impl Strategy<Value = Option<String>>) -> impl Strategy<Value = model::Entry> {
    (prop::collection::vec(self::name(), 1..4), name).prop_map(|(path, name)| model::Entry { path, name })
}

/// Excludes and renames, in the order in which they apply.
fn entries() -> impl Strategy<Value = Vec<model::Entry>> {
    let renamed = prop::sample::select(vec!["a", "b", "e", "f"]).prop_map(|name| Some(name.to_owned()));
    let excludes = prop::collection::vec(an_entry(Just(None)), 0..3);
    let renames = prop::collection::vec(an_entry(renamed), 0..4);
    (excludes, renames).prop_filter_map("no entries", |(excludes, renames)| {
        let all = [excludes, renames].concat();
        (!all.is_empty()).then_some(all)
    })
}

fn rules_of(entries: &[model::Entry]) -> FieldRules {
    let paths = |renames: bool| {
        let own = entries.iter().filter(|e| e.name.is_some() == renames);
        let texts = own.map(|e| {
            let name = e.name.iter().map(|name| format!(":{name}")).collect::<String>();
            format!("*.C.{}{name}", e.path.join("."))
        });
        texts.collect::<Vec<_>>().join(" , ")
    };
    rules(&paths(false), &paths(true))
}

fn same(
    found: Result<Option<Vec<u8>>, FieldError>,
    expected: Result<(), model::Taken>,
    before: &[u8],
    after: &Document,
) {
    match (found, expected) {
        (Ok(found), Ok(())) => assert_same(found.as_deref().unwrap_or(before), after),
        (Err(FieldError::Taken(_)), Err(model::Taken)) => {}
        (found, expected) => panic!("{found:?} and {expected:?} for {after}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn documents_are_as_in_the_model(document in a_document(), entries in entries()) {
        let before = bytes(&document);
        let mut after = document;
        let expected =
            entries.iter().try_for_each(|e| model::document(&mut after, &e.path, e.name.as_deref()));
        same(rules_of(&entries).document(&before), expected, &before, &after);
    }

    #[test]
    fn updates_are_as_in_the_model(update in an_update(), entries in entries()) {
        let before = bytes(&update);
        let mut after = update;
        let expected =
            entries.iter().try_for_each(|e| model::updated(&mut after, &e.path, e.name.as_deref()));
        same(rules_of(&entries).updated(&before), expected, &before, &after);
    }

    #[test]
    fn damaged_documents_do_not_make_it_panic(
        document in a_document(),
        entries in entries(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = bytes(&document);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let rules = rules_of(&entries);
        let _ = rules.document(&bytes);
        let _ = rules.updated(&bytes);
    }
}
