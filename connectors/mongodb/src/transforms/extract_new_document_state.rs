//! `ExtractNewDocumentState`: a change event becomes the document as it is after the change.
//!
//! An update without the whole document gives the fields it has set, under the names that the server has
//! for them, without those it has removed, and with `_id`. The key gets the type of the `_id`.

use std::borrow::Cow;
use std::sync::Arc;

use bson::{Bson, Document, doc};
use thalweg_config::{Importance, OptionKind, OptionTable, Settings};
use thalweg_core::Error;
use thalweg_core::naming::{ADJUSTMENTS, NameAdjustment};
use thalweg_core::record::{Datum, Field, Header, Record, Schema, Type, Value};
use thalweg_core::transform::change_event::{base_name, field, is_change_event};
use thalweg_core::transform::options::{
    ADD_FIELDS, ADD_FIELDS_PREFIX, ADD_HEADERS, ADD_HEADERS_PREFIX, OLD_OPERATION_HEADER, OLD_SOURCE_FIELDS, option,
    table,
};
use thalweg_core::transform::{
    Added, AddedFields, DELETE_MODE, DeleteHandling, Fate, LongerLists, Made, OLD_DELETE_MODE, OLD_DROP_TOMBSTONES,
    SchemaPool, Transform, flatten_value, invalid,
};

use super::conversion::{ArrayEncoding, Conversion};
use super::document::{described, encoded, is_empty, parsed, parsed_document, with_flag};

const DELETED: &str = "__deleted";
const ID: &str = "_id";

pub(super) static OPTIONS: OptionTable = table(
    "ExtractNewDocumentState",
    &[
        option(
            "array.encoding",
            OptionKind::String,
            Importance::Medium,
            "How arrays are written: as arrays, whose elements must then be of one type (array), or as structs with fields _0, _1 and so on (document).",
        )
        .default("array")
        .one_of(&["array", "document"]),
        option(
            "flatten.struct",
            OptionKind::Boolean,
            Importance::Low,
            "Whether fields of inner documents become fields of the first level.",
        )
        .default("false"),
        option(
            "flatten.struct.delimiter",
            OptionKind::String,
            Importance::Low,
            "What stands between the names of the levels in the name of such a field.",
        )
        .default("_"),
        DELETE_MODE,
        option(
            "delete.tombstone.handling.mode.rewrite-with-id",
            OptionKind::Boolean,
            Importance::Low,
            "Whether a rewritten delete has _id if the document as it was is not known.",
        )
        .default("false"),
        ADD_FIELDS,
        ADD_FIELDS_PREFIX,
        ADD_HEADERS,
        ADD_HEADERS_PREFIX,
        option(
            "field.name.adjustment.mode",
            OptionKind::String,
            Importance::Low,
            "How the names of fields, and of their schemas, are made fit for Avro. Unless it is none, an empty array has no value.",
        )
        .default("none")
        .one_of(ADJUSTMENTS),
        option("route.by.field", OptionKind::String, Importance::Low, "Without effect, as in Debezium.")
            .default("")
            .inert("documents are not routed by a field"),
        OLD_DROP_TOMBSTONES,
        OLD_DELETE_MODE,
        OLD_OPERATION_HEADER,
        OLD_SOURCE_FIELDS,
    ],
    &[AddedFields::check],
);

pub(super) struct ExtractNewDocumentState {
    conversion: Conversion,
    flatten: Option<Flattening>,
    deletes: DeleteHandling,
    deletes_with_id: bool,
    fields: AddedFields,
    headers: AddedFields,
    lists: LongerLists,
    keys: SchemaPool,
    values: SchemaPool,
}

struct Flattening {
    transform: Box<dyn Transform>,
    delimiter: Box<str>,
}

/// What a change event says about its document.
struct Found<'a> {
    /// Empty: there is nothing to say.
    document: Cow<'a, [u8]>,
    deleted: bool,
}

impl ExtractNewDocumentState {
    pub(super) fn make(settings: &Settings) -> Made {
        let wrong = |text: String| Error::config(text);
        let arrays = match settings.text_or_empty("array.encoding") {
            "document" => ArrayEncoding::Document,
            _ => ArrayEncoding::Array,
        };
        let names = NameAdjustment::from_option(settings.text_or_empty("field.name.adjustment.mode"));
        let delimiter = settings.text_or_empty("flatten.struct.delimiter");
        let flattening = || Flattening { transform: flatten_value(delimiter), delimiter: delimiter.into() };
        Ok(Box::new(Self {
            conversion: Conversion { arrays, names },
            flatten: settings.bool("flatten.struct").then(flattening),
            deletes: DeleteHandling::from_settings(settings),
            deletes_with_id: settings.bool("delete.tombstone.handling.mode.rewrite-with-id"),
            fields: AddedFields::fields(settings).map_err(wrong)?,
            headers: AddedFields::headers(settings).map_err(wrong)?,
            lists: LongerLists::default(),
            keys: SchemaPool::default(),
            values: SchemaPool::default(),
        }))
    }

    /// A key whose id has its own type.
    fn key(&mut self, id: Bson) -> Result<Datum, Error> {
        let key = encoded(&doc! {"id": id})?;
        let schema = match self.keys.find(|known| self.conversion.fits(&key, known.fields())) {
            Some(known) => known,
            None => self.keys.shared(Schema::new(Type::Struct(self.conversion.fields(&key, None)?))),
        };
        let values = self.conversion.values(&key, schema.fields())?;
        Ok(Datum::new(schema, Value::Struct(values)))
    }

    fn found<'a>(&self, schema: &'a Schema, values: &'a [Value], id: &Bson) -> Result<Option<Found<'a>>, Error> {
        let part = |name: &str| match field(schema, values, name) {
            Some((_, Value::String(text))) => described(text, &format!("the field {name}")).map(Some),
            _ => Ok(None),
        };
        let own = |document: &Document| encoded(document).map(Cow::Owned);
        if let Some(document) = part("after")? {
            return Ok(Some(Found { document, deleted: false }));
        }
        if let Some((schema, Value::Struct(update))) = field(schema, values, "updateDescription") {
            return Ok(Some(Found { document: own(&self.partial(schema, update, id)?)?, deleted: false }));
        }
        match self.deletes {
            DeleteHandling::Drop => Ok(None),
            DeleteHandling::Tombstone | DeleteHandling::DeleteToTombstone => {
                Ok(Some(Found { document: own(&Document::new())?, deleted: true }))
            }
            DeleteHandling::Rewrite | DeleteHandling::RewriteWithTombstone => {
                let document = match part("before")? {
                    Some(before) => before,
                    None if self.deletes_with_id => own(&doc! {ID: id.clone()})?,
                    None => own(&Document::new())?,
                };
                Ok(Some(Found { document, deleted: true }))
            }
        }
    }

    /// What an update has set.
    fn partial(&self, schema: &Schema, update: &[Value], id: &Bson) -> Result<Document, Error> {
        let mut document = match field(schema, update, "updatedFields") {
            Some((_, Value::String(text))) => {
                parsed_document(&text.as_str(), "the field updateDescription.updatedFields")?
            }
            _ => Document::new(),
        };
        if let Some((_, Value::Array(removed))) = field(schema, update, "removedFields") {
            for name in removed {
                if let Value::String(name) = name {
                    document.remove(&*name.as_str());
                }
            }
        }
        if !document.contains_key(ID) {
            document.insert(ID, id.clone());
        }
        let Some(flattening) = &self.flatten else { return Ok(document) };
        Ok(document.into_iter().map(|(name, value)| (name.replace('.', &flattening.delimiter), value)).collect())
    }

    fn value(&mut self, document: &[u8], name: &str, added: Vec<Added>) -> Result<Datum, Error> {
        if is_empty(document) {
            return Ok(Datum::none());
        }
        let name = self.conversion.schema_name(name);
        let known = self.values.find(|known| {
            let own = known.fields().len().checked_sub(added.len());
            let Some((own, more)) = own.map(|own| known.fields().split_at(own)) else { return false };
            known.name.as_deref() == Some(&*name)
                && more.iter().zip(&added).all(|(field, added)| added.is_of(field))
                && self.conversion.fits(document, own)
        });
        let schema = match known {
            Some(known) => known,
            None => {
                let mut fields: Vec<Field> = self.conversion.fields(document, Some(&name))?;
                for added in &added {
                    if fields.iter().any(|field| field.name == added.name) {
                        let text = format!("Cannot create field because of field name duplication {}", added.name);
                        return Err(invalid(text));
                    }
                    fields.push(added.field());
                }
                self.values.shared(Schema::new(Type::Struct(fields)).named(&*name))
            }
        };
        let own = schema.fields().len() - added.len();
        let mut values = self.conversion.values(document, &schema.fields()[..own])?;
        values.extend(added.into_iter().map(|added| added.value));
        Ok(Datum::new(schema, Value::Struct(values)))
    }
}

/// The text of the `_id` in a key of this connector.
fn id_text(key: &Datum) -> Option<std::borrow::Cow<'_, str>> {
    match (&key.schema, &key.value) {
        (Some(schema), Value::Struct(values)) => match field(schema, values, "id") {
            Some((_, Value::String(text))) => Some(text.as_str()),
            _ => None,
        },
        _ => None,
    }
}

impl Transform for ExtractNewDocumentState {
    fn apply(&mut self, record: &mut Record) -> Result<Fate, Error> {
        let tombstone = record.value.value.is_null();
        if !tombstone && !is_change_event(&record.value) {
            return Ok(Fate::Keep);
        }
        let Some(id) = id_text(&record.key) else { return Ok(Fate::Keep) };
        if tombstone {
            if !self.deletes.keeps_tombstones() {
                return Ok(Fate::Drop);
            }
            let id = parsed(&id, "the id of the key")?;
            record.key = self.key(id)?;
            record.value = Datum::none();
            record.headers = self.lists.longer(&record.headers, self.headers.of_tombstone());
            return Ok(Fate::Keep);
        }
        let (Some(schema), Value::Struct(values)) = (&record.value.schema, &record.value.value) else {
            return Ok(Fate::Keep);
        };
        let id = parsed(&id, "the id of the key")?;
        let Some(Found { mut document, deleted }) = self.found(schema, values, &id)? else { return Ok(Fate::Drop) };
        if self.deletes.rewrites() {
            document = Cow::Owned(with_flag(&document, DELETED, deleted)?);
        }
        let headers = self.headers.of(schema, values)?;
        let headers: Vec<Header> = headers.into_iter().flatten().map(Added::into_header).collect();
        let added = if is_empty(&document) { Vec::new() } else { self.fields.of(schema, values)? };
        let added = added.into_iter().collect::<Result<Vec<Added>, Arc<str>>>();
        let added = added.map_err(|name| invalid(format!("{name} is not a valid field name")))?;
        let name = base_name(schema).unwrap_or_default().to_owned();
        record.headers = self.lists.longer(&record.headers, headers);
        record.key = self.key(id)?;
        record.value = self.value(&document, &name, added)?;
        match &mut self.flatten {
            Some(flattening) => flattening.transform.apply(record),
            None => Ok(Fate::Keep),
        }
    }
}

#[cfg(test)]
#[path = "extract_tests.rs"]
mod tests;
