//! What `field.exclude.list` and `field.renames` make of whole events, as Debezium was recorded.

use super::*;

/// The document of the recorded flow, whole.
fn whole(id: i32) -> Document {
    doc! {
        "_id": id, "a": 1, "name": "n",
        "addr": {"city": "x", "zip": "1", "geo": {"lat": 1, "lon": 2}},
        "list": [{"k": 1, "s": "x"}, {"k": 2}],
        "grid": [[{"k": 1}]],
    }
}

/// The recorded flow of `c1`: insert, four updates, replace and delete, with both images.
fn flow() -> Vec<Document> {
    let with = |name: &str, change: &dyn Fn(&mut Document)| {
        let mut document = whole(2);
        document.insert("name", name);
        change(&mut document);
        document
    };
    let set = |document: &mut Document, path: &[&str], value: bson::Bson| {
        let (last, parents) = path.split_last().unwrap();
        let parent = parents.iter().fold(document, |at, name| at.get_document_mut(name).unwrap());
        parent.insert(*last, value);
    };
    let list = |k: i32, s: &str| bson::bson!([{"k": k, "s": "x"}, {"k": 2, "s": s}]);
    let first = whole(2);
    let second = with("n", &|d| set(d, &["a"], 2.into()));
    let third = with("m", &|d| {
        set(d, &["a"], 2.into());
        set(d, &["addr", "city"], "y".into());
    });
    let fourth = with("m", &|d| {
        set(d, &["a"], 2.into());
        set(d, &["addr", "city"], "y".into());
        set(d, &["addr", "geo", "lat"], 5.into());
        set(d, &["list"], list(5, "z"));
    });
    let fifth = with("m", &|d| {
        d.remove("a");
        set(d, &["addr"], doc! {"zip": "1", "geo": {"lat": 5}}.into());
        set(d, &["list"], list(5, "z"));
    });
    let addr = doc! {"city": "w", "zip": "2", "geo": {"lat": 1}};
    let sixth = with("m", &|d| {
        d.remove("a");
        set(d, &["addr"], addr.clone().into());
        set(d, &["list"], bson::bson!([{"k": 3}]));
    });
    let seventh = doc! {"_id": 2, "a": 1, "addr": {"city": "c"}};
    let update = |ord: u32, before: &Document, after: &Document, updated: Document, removed: &[&str]| {
        let description = doc! {"updatedFields": updated, "removedFields": removed, "truncatedArrays": []};
        let images = doc! {"fullDocument": after, "fullDocumentBeforeChange": before};
        let mut more = images;
        more.insert("updateDescription", description);
        event("update", ord, NOW, 2, more)
    };
    vec![
        event("insert", 1, NOW, 2, doc! {"fullDocument": &first}),
        update(2, &first, &second, doc! {"a": 2}, &[]),
        update(3, &second, &third, doc! {"name": "m", "addr.city": "y"}, &[]),
        update(4, &third, &fourth, doc! {"addr.geo.lat": 5, "list.0.k": 5, "list.1.s": "z"}, &[]),
        update(5, &fourth, &fifth, doc! {}, &["a", "addr.city", "addr.geo.lon"]),
        update(6, &fifth, &sixth, doc! {"addr": addr, "list": [{"k": 3}]}, &[]),
        event("replace", 7, NOW, 2, doc! {"fullDocument": &seventh, "fullDocumentBeforeChange": sixth}),
        event("delete", 8, NOW, 2, doc! {"fullDocumentBeforeChange": seventh}),
    ]
}

const IMAGES: (&str, &str) = ("capture.mode", "change_streams_update_full_with_pre_image");

/// Each record's before, after and update description, with texts as they are.
fn parts(records: &[Record]) -> Vec<[String; 3]> {
    let part = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let values = records.iter().filter_map(|record| payload(record).1);
    values
        .map(|text| {
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            ["before", "after", "updateDescription"].map(|name| part(&value[name]))
        })
        .collect()
}

fn read(decoder: &mut Decoder, collection: &str, document: Document) -> Result<Option<Record>, Error> {
    decoder.read(&Namespace::new("d", collection), &bytes(&document), SourceTime::from_millis(NOW))
}

/// The recorded chain: what is after a change is before the next one.
fn assert_flow(options: &[(&str, &str)], after: [&str; 7], updates: [&str; 5]) {
    let mut decoder = decoder(options);
    let first = read(&mut decoder, "c1", whole(2)).unwrap().unwrap();
    assert_eq!(parts(&[first])[0], ["null", after[0], "null"]);
    let out = records(&mut decoder, &flow());
    let found = parts(&out);
    let mut before = "null";
    for (i, found) in found.iter().enumerate() {
        let after = after.get(i).copied().unwrap_or("null");
        let update = i.checked_sub(1).and_then(|i| updates.get(i)).copied().unwrap_or("null");
        assert_eq!(found, &[before, after, update], "{i}");
        before = after;
    }
    assert_eq!((found.len(), out.len()), (8, 9));
    assert!(out.iter().all(|record| payload(record).0 == r#"{"id":"2"}"#));
}

#[test]
fn excluded_fields_are_in_no_part_of_an_event_as_recorded() {
    let list = "d.c1.a, d.c1.addr.city,d.c1.list.k,d.c1.addr.geo.lat";
    assert_flow(
        &[("field.exclude.list", list), IMAGES],
        [
            r#"{"_id": 2,"name": "n","addr": {"zip": "1","geo": {"lon": 2}},"list": [{"s": "x"},{}],"grid": [[{"k": 1}]]}"#,
            r#"{"_id": 2,"name": "n","addr": {"zip": "1","geo": {"lon": 2}},"list": [{"s": "x"},{}],"grid": [[{"k": 1}]]}"#,
            r#"{"_id": 2,"name": "m","addr": {"zip": "1","geo": {"lon": 2}},"list": [{"s": "x"},{}],"grid": [[{"k": 1}]]}"#,
            r#"{"_id": 2,"name": "m","addr": {"zip": "1","geo": {"lon": 2}},"list": [{"s": "x"},{"s": "z"}],"grid": [[{"k": 1}]]}"#,
            r#"{"_id": 2,"name": "m","addr": {"zip": "1","geo": {}},"list": [{"s": "x"},{"s": "z"}],"grid": [[{"k": 1}]]}"#,
            r#"{"_id": 2,"name": "m","addr": {"zip": "2","geo": {}},"list": [{}],"grid": [[{"k": 1}]]}"#,
            r#"{"_id": 2,"addr": {}}"#,
        ],
        [
            r#"{"removedFields":null,"updatedFields":"{}","truncatedArrays":null}"#,
            r#"{"removedFields":null,"updatedFields":"{\"name\": \"m\"}","truncatedArrays":null}"#,
            r#"{"removedFields":null,"updatedFields":"{\"list.1.s\": \"z\"}","truncatedArrays":null}"#,
            r#"{"removedFields":["addr.geo.lon"],"updatedFields":"{}","truncatedArrays":null}"#,
            r#"{"removedFields":null,"updatedFields":"{\"addr\": {\"zip\": \"2\", \"geo\": {}}, \"list\": [{}]}","truncatedArrays":null}"#,
        ],
    );
    let other = read(&mut decoder(&[("field.exclude.list", list)]), "c2", doc! {"_id": 1, "a": 1, "name": "kept"});
    assert_eq!(parts(&[other.unwrap().unwrap()])[0][1], r#"{"_id": 1,"a": 1,"name": "kept"}"#);
}

#[test]
fn renamed_fields_stand_at_the_end_in_every_part_as_recorded() {
    let list = "d.c1.a:alpha,d.c1.addr.city:town,d.c1.list.k:key,*.c2.name:title";
    assert_flow(
        &[("field.renames", list), IMAGES],
        [
            r#"{"_id": 2,"name": "n","addr": {"zip": "1","geo": {"lat": 1,"lon": 2},"town": "x"},"list": [{"s": "x","key": 1},{"key": 2}],"grid": [[{"k": 1}]],"alpha": 1}"#,
            r#"{"_id": 2,"name": "n","addr": {"zip": "1","geo": {"lat": 1,"lon": 2},"town": "x"},"list": [{"s": "x","key": 1},{"key": 2}],"grid": [[{"k": 1}]],"alpha": 2}"#,
            r#"{"_id": 2,"name": "m","addr": {"zip": "1","geo": {"lat": 1,"lon": 2},"town": "y"},"list": [{"s": "x","key": 1},{"key": 2}],"grid": [[{"k": 1}]],"alpha": 2}"#,
            r#"{"_id": 2,"name": "m","addr": {"zip": "1","geo": {"lat": 5,"lon": 2},"town": "y"},"list": [{"s": "x","key": 5},{"s": "z","key": 2}],"grid": [[{"k": 1}]],"alpha": 2}"#,
            r#"{"_id": 2,"name": "m","addr": {"zip": "1","geo": {"lat": 5}},"list": [{"s": "x","key": 5},{"s": "z","key": 2}],"grid": [[{"k": 1}]]}"#,
            r#"{"_id": 2,"name": "m","addr": {"zip": "2","geo": {"lat": 1},"town": "w"},"list": [{"key": 3}],"grid": [[{"k": 1}]]}"#,
            r#"{"_id": 2,"addr": {"town": "c"},"alpha": 1}"#,
        ],
        [
            r#"{"removedFields":null,"updatedFields":"{\"alpha\": 2}","truncatedArrays":null}"#,
            r#"{"removedFields":null,"updatedFields":"{\"name\": \"m\", \"addr.town\": \"y\"}","truncatedArrays":null}"#,
            r#"{"removedFields":null,"updatedFields":"{\"addr.geo.lat\": 5, \"list.1.s\": \"z\", \"list.0.key\": 5}","truncatedArrays":null}"#,
            r#"{"removedFields":["alpha","addr.town","addr.geo.lon"],"updatedFields":"{}","truncatedArrays":null}"#,
            r#"{"removedFields":null,"updatedFields":"{\"addr\": {\"zip\": \"2\", \"geo\": {\"lat\": 1}, \"town\": \"w\"}, \"list\": [{\"key\": 3}]}","truncatedArrays":null}"#,
        ],
    );
    let other = read(&mut decoder(&[("field.renames", list)]), "c2", doc! {"_id": 1, "a": 1, "name": "kept"});
    assert_eq!(parts(&[other.unwrap().unwrap()])[0][1], r#"{"_id": 1,"a": 1,"title": "kept"}"#);
}

/// Recorded with a failing task and with one that goes on.
#[test]
fn a_name_that_is_taken_follows_the_failure_mode_as_recorded() {
    let renames = ("field.renames", "d.c1.a:b");
    let taken = event("insert", 4, NOW, 2, doc! {"fullDocument": {"_id": 2, "a": 1, "b": 2}});
    let mut failing = decoder(&[renames]);
    let first = read(&mut failing, "c1", doc! {"_id": 1, "a": 1}).unwrap().unwrap();
    assert_eq!(parts(&[first])[0][1], r#"{"_id": 1,"b": 1}"#);
    let error = failing.change(&bytes(&taken), NOW, &mut Vec::new()).unwrap_err();
    assert!(error.message.starts_with("Error while processing event at offset {"), "{}", error.message);
    assert!(error.message.ends_with(" of collection d.c1"), "{}", error.message);
    assert!(error.causes[0].starts_with("Document already contains field : b"), "{:?}", error.causes);
    let error = read(&mut failing, "c1", doc! {"_id": 9, "a": 1, "b": 2}).unwrap_err();
    assert!(error.message.ends_with("document with _id 9"), "{}", error.message);

    let mut tolerant = decoder(&[renames, ("event.processing.failure.handling.mode", "warn")]);
    let next = event("insert", 5, NOW, 3, doc! {"fullDocument": {"_id": 3, "a": 3}});
    let out = records(&mut tolerant, &[taken, next]);
    assert_eq!(parts(&out), [["null", r#"{"_id": 3,"b": 3}"#, "null"].map(str::to_owned)]);
    assert_eq!((tolerant.take_failures(), payload(&out[0]).0), (1, r#"{"id":"3"}"#.to_owned()));
    assert!(read(&mut tolerant, "c1", doc! {"_id": 9, "a": 1, "b": 2}).unwrap().is_none());
}

#[test]
fn mgo_23_the_key_is_made_of_the_whole_document() {
    let options = [("field.exclude.list", "d.c1._id, *.c1.secret"), ("field.renames", "d.c1.x:y")];
    let mut decoder = decoder(&options);
    let read = read(&mut decoder, "c1", doc! {"_id": 7, "x": 1, "list": [{"secret": 1}]}).unwrap().unwrap();
    let out = records(
        &mut decoder,
        &[event("insert", 1, NOW, 7, doc! {"fullDocument": {"_id": 7, "x": 1, "secret": {"a": 1}}})],
    );
    assert_eq!(parts(std::slice::from_ref(&read))[0][1], r#"{"list": [{"secret": 1}],"y": 1}"#);
    assert_eq!(parts(&out)[0][1], r#"{"y": 1}"#);
    assert_eq!((payload(&read).0, payload(&out[0]).0), (r#"{"id":"7"}"#.to_owned(), r#"{"id":"7"}"#.to_owned()));
}

#[test]
fn t_48_an_update_of_excluded_fields_only_is_still_told() {
    let description = doc! {
        "updatedFields": {"a": 1}, "removedFields": ["a.x", "b"],
        "truncatedArrays": [{"field": "b.c", "newSize": 1}, {"field": "d.0.old", "newSize": 2}, {"field": "b", "newSize": 3}],
    };
    let change = event("update", 1, NOW, 1, doc! {"fullDocument": null, "updateDescription": description});
    let options = [("field.exclude.list", "d.c1.a,d.c1.b.c"), ("field.renames", "d.c1.d.old:new")];
    let out = records(&mut decoder(&options), &[change]);
    let described =
        r#"{"removedFields":["a.x"],"updatedFields":"{}","truncatedArrays":[{"field":"d.0.new","size":2}]}"#;
    assert_eq!(parts(&out), [["null", "null", described].map(str::to_owned)]);
}

#[test]
fn damaged_documents_with_rules_are_failures_and_not_panics() {
    let options = [
        ("field.exclude.list", "d.c1.a.b"),
        ("field.renames", "d.c1.x:y"),
        ("event.processing.failure.handling.mode", "skip"),
    ];
    let mut decoder = decoder(&options);
    let good = bytes(&event("insert", 1, NOW, 1, doc! {"fullDocument": {"_id": 1, "a": [1, {"b": "c"}], "x": "y"}}));
    for at in 4..good.len() {
        for byte in [0, 0x7F, 0xFF] {
            let mut damaged = good.to_vec();
            damaged[at] = byte;
            let mut out = Vec::new();
            decoder.change(&damaged.into(), NOW, &mut out).unwrap();
            out.iter().for_each(|record| drop(payload(record)));
        }
    }
}
