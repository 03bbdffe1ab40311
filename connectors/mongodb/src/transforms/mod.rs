//! Transforms for the records of this connector, whose documents are texts of extended JSON.
//!
//! `document` has the BSON that such a text describes, and `conversion` makes it a struct with a schema that
//! follows from its values. With both `extract_new_document_state` gives the document of a change event, and
//! `event_router` the message of a document in an outbox collection, whose payload `indented` writes.

mod conversion;
mod document;
mod event_router;
mod extract_new_document_state;
mod indented;
#[cfg(test)]
mod recorded_tests;
#[cfg(test)]
mod support;

use thalweg_core::transform::TransformClass;

/// In the order of their names.
pub(crate) static CLASSES: &[TransformClass] = &[
    TransformClass::new(
        "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState",
        &extract_new_document_state::OPTIONS,
        extract_new_document_state::ExtractNewDocumentState::make,
    ),
    TransformClass::new(
        "io.debezium.connector.mongodb.transforms.outbox.MongoEventRouter",
        &event_router::OPTIONS,
        event_router::MongoEventRouter::make,
    ),
];
